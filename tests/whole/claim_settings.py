"""The settings in the tables of README and docs/where_selection_pays.md, and the methods that have no paper."""

NOT_PUBLISHED = (  # methods without a paper, then substitutes for published methods
    *("flash_whitened", "flash_progress", "flash_answered", "flash_calibrated", "low_ratio"),
    *("neural_bandit", "restless_bandit"),
)
DOCS_ROWS = (  # the rows of the table in docs/where_selection_pays.md
    ("homogeneous clients", "regimes_digits", "none"),
    ("Beta label noise, mean 30 %, concentration 2", "regimes_digits", "beta30_wide"),
    ("label noise of 90 % in 40 % of the clients", "regimes_digits", "bimodal40"),
    ("label noise of 90 % in 70 % of the clients", "regimes_digits", "bimodal70"),
    ("the same, other seeds, FLASH's variants only", "flash_repairs", "bimodal70"),
    ("the same, Fashion-MNIST", "regimes_fashion", "bimodal70"),
    ("one class per client, cohort of 10", "cohorts_digits", "shards1_cohort10"),
    ("one class per client, cohort of 5", "cohorts_digits", "shards1_cohort5"),
    ("the same, Fashion-MNIST", "regimes_fashion", "shards1"),
    ("two classes per client, cohort of 5", "cohorts_digits", "shards2_cohort5"),
    ("Dirichlet 0.05, cohort of 5", "cohorts_digits", "dirichlet05_cohort5"),
    ("Dirichlet 0.1, cohort of 10", "cohorts_digits", "dirichlet1_cohort10"),
    ("the same, Fashion-MNIST", "regimes_fashion", "dirichlet"),
    ("persistent stragglers, 10 virtual hours", "regimes_digits", "speeds"),
    ("the same, 60 virtual hours, Fashion-MNIST", "regimes_fashion", "speeds"),
    ("measured phones, 5 virtual minutes", "regimes_digits", "phones"),
    ("Dirichlet 0.1 and persistent stragglers", "regimes_digits", "classes_speeds"),
    ("40 % noisy clients and Dirichlet 0.1", "regimes_digits", "noise_classes"),
    ("the same, other seeds, FLASH's variants only", "flash_repairs", "noise_classes"),
    ("40 % noisy clients and persistent stragglers", "regimes_digits", "noise_speeds"),
    ("all three", "regimes_digits", "noise_classes_speeds"),
    ("FLASH's setting", "regimes_digits", "flash_setting"),
    ("spurious correlation in 8 of 24 clients", "spurious_cmnist", "thirds"),
    ("in 16 of 24 clients", "spurious_cmnist", "mostly"),
    ("in 20 of 24 clients", "spurious_cmnist", "nearly_all"),
)
METHODS_PER_ROW = 4  # methods that a row of the table in docs/where_selection_pays.md names
README_SETTINGS = {  # of studies/plateau_digits, with the labels of README's table
    "equal": "IID data, equal devices",
    "noise40": "40 % of clients have 90 % wrong labels",
    "noise70": "70 % of clients have 90 % wrong labels",
    "one_class": "one class per client, cohort of 5",
    "dirichlet": "label skew, Dirichlet 0.1",
    "dirichlet_noise40": "Dirichlet 0.1, and 40 % have 90 % wrong labels",
    "speeds": "speeds differ between clients",
    "hours": "Dirichlet 0.1, each client available for 30 % of the time",
}
