"""The page of a diagnosis: diagnosis.html and diagnosis.json in a run's folder, and text for the terminal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedcohort.diagnosis.label_noise import MIN_LOSS_GAP
from fedcohort.record.folder import write_atomically
from fedcohort.report.figure import style
from fedcohort.report.render import render, render_document
from fedcohort.results.diagnosis import EVEN_CLASS_SHARE, MIN_NOISE_RATE_GAP, MIN_PERSISTENT_SPEED, RunDiagnosis
from fedcohort.results.near_settings import DESCRIPTOR_NAMES, describe_federation, find_near_settings, load_settings

PAGE_FILE, JSON_FILE, PICTURE_FILE = "diagnosis.html", "diagnosis.json", "figures/diagnosis.png"
MAX_PAGE_ROWS = 60  # clients in the page's table, those with the largest rates
MAX_TERMINAL_ROWS = 10
# measured gains of `selector=auto` by kind of federation, each with setting and points as text
MEASURED_GAINS = yaml.safe_load(Path(__file__).with_name("measured_gains.yaml").read_text())
DIAGNOSIS_THRESHOLDS = {
    "scale": MIN_LOSS_GAP,
    "gap": MIN_NOISE_RATE_GAP,
    "even_share": EVEN_CLASS_SHARE,
    "persistent_speed": MIN_PERSISTENT_SPEED,
}


def describe_diagnosis(diagnosis: RunDiagnosis, max_client_rows: int = MAX_PAGE_ROWS) -> str:
    """Return the page of `diagnosis` in Markdown, with at most `max_client_rows` rows of clients."""
    return render(
        "diagnosis.md.j2",
        diagnosis=diagnosis,
        thresholds=DIAGNOSIS_THRESHOLDS,
        measured_gains=MEASURED_GAINS,
        rows=list_client_rates(diagnosis),
        max_rows=max_client_rows,
        quantile=np.quantile,
        near=list_near_settings(diagnosis),
    )


def list_client_rates(diagnosis: RunDiagnosis) -> list[dict[str, Any]]:
    """Return id, noise group, estimated and simulated rate of wrong labels of each client, highest estimate first.

    The clients are those of the last valid probe in `diagnosis`.
    """
    if not diagnosis.valid_probes:
        return []
    clients, noise = diagnosis.valid_probes[-1].clients, diagnosis.valid_probes[-1].noise
    group = "more wrong labels" if diagnosis.noise_case == "persists" else "fits worse"
    client_facts = zip(clients, noise.fit.noise_rate, noise.is_noisier, diagnosis.info.noise_rate[clients], strict=True)
    client_rows = [
        {"client": int(client), "rate": float(rate), "group": group if is_noisier else "", "truth": float(true_rate)}
        for client, rate, is_noisier, true_rate in client_facts
    ]
    return sorted(client_rows, key=lambda client_row: -client_row["rate"])


def list_near_settings(diagnosis: RunDiagnosis) -> Mapping[str, Any]:
    """Return the descriptors of the federation in `diagnosis`, and the settings of our studies that are nearest to it.

    Returns:
        `descriptors` by name, None where unknown. `nearest`: the distance of each of these settings with its facts
        (`StudySetting.facts`). `usual_distance`: distance within which 75 % of the settings have a setting of another
        study; a federation whose nearest setting is farther is like none of them.
    """
    descriptors = describe_federation(diagnosis)
    nearest_settings, usual_distance = find_near_settings(descriptors, load_settings())
    return {
        "descriptors": {
            name: float(value) if np.isfinite(value) else None
            for name, value in zip(DESCRIPTOR_NAMES, descriptors, strict=True)
        },
        "usual_distance": usual_distance,
        "nearest": [{"distance": distance, **setting.facts} for distance, setting in nearest_settings],
    }


def list_diagnosis_facts(diagnosis: RunDiagnosis) -> Mapping[str, Any]:
    """Return the content of `diagnosis.json`: the numbers of `diagnosis` by name."""
    skew, speeds = diagnosis.skew, diagnosis.speeds
    return {
        "advice": diagnosis.advice,
        "label_noise": {
            "case": diagnosis.noise_case,
            "probes": [
                {
                    "round": probe_result.round,
                    "gap": probe_result.noise.gap,
                    "nats_of_a_wrong_label": probe_result.noise.fit.nats_per_wrong_label,
                    "valid": bool(probe_result.noise.is_valid),
                }
                for probe_result in diagnosis.probe_results
            ],
            "clients": list_client_rates(diagnosis),
        },
        "classes": None
        if skew is None
        else {
            "effective": skew.n_all_classes,
            "effective_of_random_cohorts": skew.n_cohort_classes,
            "effective_of_clients": skew.n_client_classes.tolist(),
            "size_variation": skew.size_variation,
            "share_of_largest_tenth": skew.share_of_largest_tenth,
        },
        "speeds": None
        if speeds is None
        else {"persistent_share": speeds.rho, "low": speeds.low, "high": speeds.high, "factor": diagnosis.speed_gain},
        "availability": None if diagnosis.availability is None else diagnosis.availability.tolist(),
        "near_settings": list_near_settings(diagnosis),
        "probe_bytes": diagnosis.probe_bytes,
        "passes": diagnosis.n_forward_passes,
    }


def draw_noise_rates(diagnosis: RunDiagnosis, picture_path: Path) -> None:
    """Draw the clients' excess rates of wrong labels; noisier clients have a different marker."""
    picture_path.parent.mkdir(exist_ok=True)
    rows = list_client_rates(diagnosis)[::-1]
    figure = style.make_run_figure(diagnosis.info, "Excess rate of wrong labels of each client", style.PAGE_WIDTH, 2.6)
    axes = figure.subplots()
    for group, group_colour, marker_shape in (("", style.BLUE, "o"), (rows[-1]["group"], style.VERMILLION, "s")):
        group_rows = [(row_position, row) for row_position, row in enumerate(rows) if row["group"] == group]
        if not group_rows:
            continue
        row_positions, excess_rates = (
            [row_position for row_position, _ in group_rows],
            [row["rate"] for _, row in group_rows],
        )
        axes.plot(row_positions, excess_rates, marker_shape, markersize=3, color=group_colour, label=group or "others")
    if diagnosis.info.noise_rate.any():
        true_rates = [row["truth"] for row in rows]
        axes.plot(range(len(rows)), true_rates, "x", color=style.BLACK, markersize=3, label="simulated rate (not used)")
    axes.set_xlabel("clients, by estimated rate")
    axes.set_ylabel("share of samples")
    axes.set_xticks([])
    style.format_axes(axes)
    style.add_legend(figure)
    style.save_figure(figure, picture_path)


def write_diagnosis_page(run_folder: Path, diagnosis: RunDiagnosis) -> Path:
    """Write figure, page and numbers of `diagnosis` into the run's folder `run_folder`, and return the page."""
    page_text = describe_diagnosis(diagnosis)
    if diagnosis.valid_probes:
        draw_noise_rates(diagnosis, run_folder / PICTURE_FILE)
        section_heading = "## Classes and sizes"
        page_text = page_text.replace(
            section_heading, f"![Excess rate of wrong labels of each client]({PICTURE_FILE})\n\n{section_heading}", 1
        )
    write_atomically(run_folder / JSON_FILE, json.dumps(list_diagnosis_facts(diagnosis), indent=1))
    write_atomically(run_folder / PAGE_FILE, render_document("Diagnosis", page_text, run_folder))
    return run_folder / PAGE_FILE
