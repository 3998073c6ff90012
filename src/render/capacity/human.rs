//! The plan as Markdown: readable in a terminal, ready for a design document.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::inputs::{input_rows, origin_text, size};
use super::measured::{write_calibration, write_codecs};
use super::simulation::write_simulation;
use crate::ops::capacity::{Advice, CapacityReport, DEFAULT_MAX_MAP_COUNT, DiskPlan, PartitionReason, Plan};
use crate::render::units;

/// The plan and what was simulated, `width` columns wide at most where something can be made narrower.
pub fn render_human(report: &CapacityReport, width: u16) -> String {
    let plan = &report.plan;
    let mut out = String::new();
    write_storage(&mut out, plan);
    write_inputs(&mut out, plan);
    if let Some(calibration) = &report.calibration {
        write_calibration(&mut out, calibration);
    }
    if let Some(codecs) = &report.codecs {
        write_codecs(&mut out, codecs, plan);
    }
    write_partitions(&mut out, plan);
    write_overheads(&mut out, plan);
    write_disks(&mut out, plan);
    write_growth(&mut out, plan);
    write_settings(&mut out, plan);
    if let Some(simulation) = &report.simulation {
        write_simulation(&mut out, simulation, width);
    }
    write_advice(&mut out, plan);
    out
}

/// A table whose first column is text and whose others are numbers.
pub(super) fn table(headers: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(headers.iter().copied()).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Decimal and binary, as disks are sold and as tools show them.
pub(super) fn both(bytes: f64) -> String {
    let whole = units::saturating_u64(bytes.round());
    format!("{} = {}", units::gigabytes(whole), units::gibibytes(whole))
}

fn write_storage(out: &mut String, plan: &Plan) {
    let (inputs, storage) = (&plan.inputs, &plan.storage);
    let _ = writeln!(out, "# Capacity plan\n");
    let _ = writeln!(out, "**{}** in the cluster, with headroom.", both(storage.cluster_bytes));
    let _ = writeln!(out, "**{}** on each of {} brokers.\n", both(storage.per_broker_bytes), inputs.brokers.value);
    let retained = if storage.limited_by_size {
        format!("{} retained (retention.bytes of every partition)", size(storage.retained_bytes))
    } else {
        format!(
            "{} a day x {} compression ratio x {} days",
            size(storage.raw_bytes_per_day),
            units::ratio(inputs.compression_ratio.value),
            units::ratio(inputs.retention_days.value)
        )
    };
    let _ = writeln!(
        out,
        "    {retained} x {} replicas x {} headroom\n",
        inputs.replication_factor.value,
        units::ratio(inputs.headroom.value)
    );
}

fn write_inputs(out: &mut String, plan: &Plan) {
    let rows = input_rows(&plan.inputs).into_iter();
    let rows = rows.map(|row| vec![row.name.replace('_', " "), row.text, origin_text(row.origin).to_owned()]);
    let _ = writeln!(out, "## Inputs\n\n{}\n", table(&["input", "value", "from"], rows));
}

fn write_partitions(out: &mut String, plan: &Plan) {
    let (partitions, files) = (&plan.partitions, &plan.open_files);
    let because = match partitions.because {
        PartitionReason::Throughput => "throughput decides",
        PartitionReason::Consumers => "consumers decide",
    };
    let _ = writeln!(
        out,
        "## Partitions and open files\n\n\
         Partitions: {} recommended = max({} for {} at {} a partition, {} for the consumers); {because}.\n\
         This plan uses {}; advice is at most {} (10 a broker).\n",
        partitions.recommended,
        partitions.for_throughput,
        units::rate(plan.inputs.target_throughput.value),
        units::rate(plan.inputs.partition_throughput.value),
        partitions.for_consumers,
        partitions.planned,
        partitions.upper_advice,
    );
    let _ = writeln!(
        out,
        "File descriptors of a broker: {} = {} replicas x {} segments x 3 files + {}.\n\
         Memory maps of a broker: {} = {} replicas x {} segments x 2 indexes.\n",
        units::count(files.per_broker),
        units::count(files.partition_replicas),
        units::count(files.segments_per_partition),
        units::count(plan.inputs.fd_buffer.value),
        units::count(files.memory_maps_per_broker),
        units::count(files.partition_replicas),
        units::count(files.segments_per_partition),
    );
}

fn write_overheads(out: &mut String, plan: &Plan) {
    let overheads = &plan.overheads;
    let rows = [
        ("retention removes whole segments", overheads.whole_segments_bytes),
        ("written between two retention checks", overheads.check_interval_bytes),
        ("removed, waiting for file.delete.delay.ms", overheads.delete_delay_bytes),
        ("offset and time indexes", overheads.index_bytes),
        ("preallocated indexes, sparse: apparent size only", overheads.index_preallocation_bytes),
    ];
    let rows = rows.into_iter().map(|(name, bytes)| vec![name.to_owned(), size(bytes)]);
    let _ = writeln!(
        out,
        "## What the headroom has to cover on a broker\n\n{}\n\n\
         Headroom needed for these: {:.3}; planned: {}.\n",
        table(&["beyond the formula", "at most"], rows),
        overheads.needed_headroom,
        units::ratio(plan.inputs.headroom.value)
    );
}

fn write_disks(out: &mut String, plan: &Plan) {
    let row = |disk: &DiskPlan| {
        vec![
            format!("{}{}", disk.class.name(), if disk.chosen { " (chosen)" } else { "" }),
            units::rate(disk.class.bytes_per_second()),
            disk.for_throughput.to_string(),
            disk.for_capacity.map_or_else(|| "-".to_owned(), |disks| disks.to_string()),
            disk.per_broker.to_string(),
            size(disk.bytes_per_disk),
            units::duration_ms(duration(disk.rebuild_seconds)),
        ]
    };
    let headers = ["disk", "throughput", "for throughput", "for capacity", "a broker", "on each", "refill"];
    let (write, read) =
        plan.disks.first().map_or((0.0, 0.0), |disk| (disk.write_bytes_per_second, disk.read_bytes_per_second));
    let _ = writeln!(
        out,
        "## Disks\n\nA broker's disks at the peak: {} written (with replication), {} read by {} catching up.\n\n{}\n\n\
         Refill: a lost broker's data at the disks' throughput; the network may be slower.\n",
        units::rate(write),
        units::rate(read),
        units::ratio(plan.inputs.catch_up_readers.value),
        table(&headers, plan.disks.iter().map(row))
    );
}

fn duration(seconds: f64) -> i64 {
    let minutes = units::saturating_u64((seconds / 60.0).ceil());
    i64::try_from(minutes.saturating_mul(60_000)).unwrap_or(i64::MAX)
}

fn write_growth(out: &mut String, plan: &Plan) {
    if plan.inputs.growth_per_year.value == 0.0 {
        return;
    }
    let rows = plan.growth.iter().map(|year| {
        vec![
            year.year.to_string(),
            size(year.cluster_bytes),
            size(year.per_broker_bytes),
            units::count(year.brokers_at_todays_size),
        ]
    });
    let headers = ["after years", "cluster", "each of today's brokers", "brokers at today's size"];
    let _ = writeln!(
        out,
        "## Growth\n\n{} a year.\n\n{}\n",
        units::percent(plan.inputs.growth_per_year.value),
        table(&headers, rows)
    );
}

fn write_settings(out: &mut String, plan: &Plan) {
    let settings = &plan.settings;
    let _ = writeln!(
        out,
        "## Settings that fit\n\n```properties\n\
         # topic\n\
         retention.ms={}\n\
         retention.bytes={}",
        settings.retention_ms, settings.retention_bytes
    );
    if settings.retention_bytes < 0 {
        let _ = writeln!(
            out,
            "# rather lose old records than fill the disk: retention.bytes={}",
            settings.guard_retention_bytes
        );
    }
    let _ = writeln!(
        out,
        "segment.bytes={}\n\
         segment.ms={}\n\
         segment.index.bytes={}\n\
         index.interval.bytes={}\n\
         file.delete.delay.ms={}\n\
         # broker\n\
         log.retention.check.interval.ms={}\n\
         # operating system: ulimit -n {}, vm.max_map_count={}\n```\n",
        settings.segment_bytes,
        settings.segment_ms,
        settings.segment_index_bytes,
        settings.index_interval_bytes,
        settings.file_delete_delay_ms,
        settings.retention_check_interval_ms,
        plan.open_files.per_broker.max(100_000),
        plan.open_files.memory_maps_per_broker.saturating_mul(2).max(DEFAULT_MAX_MAP_COUNT)
    );
}

fn write_advice(out: &mut String, plan: &Plan) {
    if plan.advice.is_empty() {
        return;
    }
    let _ = writeln!(out, "## To think about\n");
    for advice in &plan.advice {
        let _ = writeln!(out, "- {}", sentence(*advice, plan));
    }
}

/// An advice as a sentence with the plan's numbers.
pub(super) fn sentence(advice: Advice, plan: &Plan) -> String {
    let (inputs, partitions) = (&plan.inputs, &plan.partitions);
    match advice {
        Advice::ReplicationAboveBrokers => format!(
            "{} replicas cannot be placed on {} brokers.",
            inputs.replication_factor.value, inputs.brokers.value
        ),
        Advice::SingleCopy => "There is a single copy of the data: a lost disk is lost data.".to_owned(),
        Advice::NoBrokerTakesOver => format!(
            "{} brokers hold {} replicas: after a loss nobody can take over, the broker must come back.",
            inputs.brokers.value, inputs.replication_factor.value
        ),
        Advice::PartitionsAboveAdvice => format!(
            "{} partitions are more than the {} that {} brokers should hold.",
            partitions.planned, partitions.upper_advice, inputs.brokers.value
        ),
        Advice::PartitionsBelowNeed => {
            format!("{} partitions are fewer than the {} needed.", partitions.planned, partitions.recommended)
        }
        Advice::PartitionsBelowBrokers => format!(
            "Partitions: {} on {} brokers: some brokers lead none and the load is uneven.",
            partitions.planned, inputs.brokers.value
        ),
        Advice::TargetBelowMean => format!(
            "The target throughput of {} is below the mean of what is sent.",
            units::rate(inputs.target_throughput.value)
        ),
        Advice::HeadroomBelowOverheads => format!(
            "Headroom {} does not cover whole segments, delays and indexes; they need {:.3}.",
            units::ratio(inputs.headroom.value),
            plan.overheads.needed_headroom
        ),
        Advice::MemoryMapsAboveDefault => format!(
            "{} memory maps are more than Linux allows by default ({}): raise vm.max_map_count.",
            units::count(plan.open_files.memory_maps_per_broker),
            units::count(DEFAULT_MAX_MAP_COUNT)
        ),
        Advice::SegmentSpansRetention => format!(
            "A segment takes {} days to close, retention is {} days: records live much longer than asked for.",
            units::ratio(plan.open_files.segment_days),
            units::ratio(inputs.retention_days.value)
        ),
    }
}
