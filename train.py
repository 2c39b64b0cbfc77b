"""Entry point: python train.py selector=flash agg=scaffold (see configs/ for the words of each group)."""

from fedcohort.run import main

if __name__ == "__main__":
    main()
