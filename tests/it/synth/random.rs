//! Random partitions as a healthy broker could have them: producers with sequences and transactions, all codecs, epochs,
//! rolls, and the gaps that compaction leaves.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::control::{Marker, end_transaction};
use super::{Batch, Codec, Partition, Record};

/// What happens next to the log.
#[derive(Debug, Clone)]
enum Step {
    Append { producer: Option<usize>, codec: usize, records: Vec<Record> },
    EndTransaction { producer: usize, marker: Marker },
    Fence { producer: usize },
    NewLeader,
    Gap(i64),
    Roll,
}

/// A partition of up to `steps` appends and other events, its records from `begin_ms` on. Open transactions stay open.
pub(crate) fn healthy_partition(begin_ms: i64, steps: usize) -> impl Strategy<Value = Partition> {
    partition_of(begin_ms, steps, record().boxed())
}

/// The same of given records, whose timestamps are their distances from their batches' times.
pub(crate) fn partition_of(
    begin_ms: i64,
    steps: usize,
    record: BoxedStrategy<Record>,
) -> impl Strategy<Value = Partition> {
    vec(step(record), 1..=steps)
        .prop_map(move |steps| steps.into_iter().fold(Writer::new(begin_ms), Writer::apply).partition)
}

fn step(record: BoxedStrategy<Record>) -> impl Strategy<Value = Step> {
    let producer = option::weighted(0.7, 0..PRODUCERS);
    prop_oneof![
        12 => (producer, 0..Codec::ALL.len(), vec(record, 1..8))
            .prop_map(|(producer, codec, records)| Step::Append { producer, codec, records }),
        3 => (TRANSACTIONAL..PRODUCERS, prop_oneof![Just(Marker::Commit), Just(Marker::Abort)])
            .prop_map(|(producer, marker)| Step::EndTransaction { producer, marker }),
        1 => (TRANSACTIONAL..PRODUCERS).prop_map(|producer| Step::Fence { producer }),
        1 => Just(Step::NewLeader),
        1 => (1..100_i64).prop_map(Step::Gap),
        2 => Just(Step::Roll),
    ]
}

/// A record whose timestamp is its distance from the batch's time.
fn record() -> impl Strategy<Value = Record> {
    let bytes = || option::weighted(0.8, vec(any::<u8>(), 0..40));
    let headers = vec((vec(any::<u8>(), 0..6), bytes()), 0..3);
    (bytes(), bytes(), headers, -5_000..5_000_i64).prop_map(|(key, value, headers, timestamp_ms)| {
        // A header's key is text.
        let headers = headers.into_iter().map(|(key, value)| (key.iter().map(|byte| byte & 0x7f).collect(), value));
        Record { key, value, headers: headers.collect(), timestamp_ms, ..Record::default() }
    })
}

/// Producers below this number are idempotent only.
const TRANSACTIONAL: usize = 2;
const PRODUCERS: usize = 5;

#[derive(Debug, Clone, Copy, Default)]
struct ProducerState {
    epoch: i16,
    next_sequence: i32,
    in_transaction: bool,
}

#[derive(Debug)]
struct Writer {
    partition: Partition,
    next_offset: i64,
    clock_ms: i64,
    leader_epoch: i32,
    producers: [ProducerState; PRODUCERS],
}

impl Writer {
    fn new(begin_ms: i64) -> Self {
        Self {
            partition: Partition::new("random", 0).index_interval_bytes(200),
            next_offset: 0,
            clock_ms: begin_ms,
            leader_epoch: 0,
            producers: Default::default(),
        }
    }

    fn apply(mut self, step: Step) -> Self {
        self.clock_ms += 1_000;
        match step {
            Step::Append { producer, codec, records } => self.append(producer, Codec::ALL[codec], records),
            Step::EndTransaction { producer, marker } if self.producers[producer].in_transaction => {
                self.end_transaction(producer, marker);
            }
            Step::Fence { producer } if self.producers[producer].next_sequence > 0 => {
                // The coordinator aborts what is open in the name of the next epoch.
                self.producers[producer].epoch += 1;
                if self.producers[producer].in_transaction {
                    self.end_transaction(producer, Marker::Abort);
                }
                self.producers[producer].next_sequence = 0;
            }
            Step::NewLeader => self.leader_epoch += 1,
            Step::Gap(count) => self.next_offset += count,
            Step::Roll if !self.partition.segments.last().unwrap().log.is_empty() => {
                self.partition = self.partition.roll_at(self.next_offset);
            }
            Step::Roll | Step::EndTransaction { .. } | Step::Fence { .. } => {}
        }
        self
    }

    fn append(&mut self, producer: Option<usize>, codec: Codec, records: Vec<Record>) {
        let count = i32::try_from(records.len()).unwrap();
        let clock_ms = self.clock_ms;
        let records =
            records.into_iter().map(|record| Record { timestamp_ms: clock_ms + record.timestamp_ms, ..record });
        let mut batch = Batch::at(self.next_offset).leader_epoch(self.leader_epoch).codec(codec).records(records);
        if let Some(number) = producer {
            let state = &mut self.producers[number];
            batch = batch.producer(producer_id(number), state.epoch, state.next_sequence);
            state.next_sequence += count;
            if number >= TRANSACTIONAL {
                state.in_transaction = true;
                batch = batch.transactional();
            }
        }
        self.push(batch);
    }

    fn end_transaction(&mut self, number: usize, marker: Marker) {
        let state = &mut self.producers[number];
        state.in_transaction = false;
        let producer = (producer_id(number), state.epoch);
        self.push(
            end_transaction(self.next_offset, marker, producer, 0, self.clock_ms).leader_epoch(self.leader_epoch),
        );
    }

    fn push(&mut self, batch: Batch) {
        self.next_offset = batch.last_offset() + 1;
        self.partition = self.partition.clone().append(batch);
    }
}

fn producer_id(number: usize) -> i64 {
    1_000 + i64::try_from(number).unwrap()
}

proptest! {
    #[test]
    fn offsets_of_random_partitions_grow(partition in healthy_partition(super::T, 40)) {
        let mut next_offset = 0;
        for segment in &partition.segments {
            prop_assert!(segment.base_offset >= next_offset);
            for unit in &segment.units {
                prop_assert!(unit.last_offset() >= next_offset);
                next_offset = unit.last_offset() + 1;
            }
        }
        prop_assert_eq!(partition.log_end_offset(), next_offset.max(partition.segments.last().unwrap().base_offset));
    }
}
