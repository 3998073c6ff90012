//! Logs of records as an application writes them: a short key, and a value of JSON.

use std::io::Write as _;
use std::path::Path;

use segtool::format::compression::{Codec, Compressor, Level, Lz4Checksum};
use segtool::format::encode::{BatchFields, Deltas, encode_batch, encode_record};
use segtool::format::record::Headers;
use segtool::format::{Attributes, Offset, TimestampMs};

/// Bytes of a record, its length field included.
pub(crate) const RECORD: usize = 350;
/// Of those, all but the value.
const AROUND_VALUE: usize = 2 + 1 + 1 + 1 + 1 + KEY + 2 + 1;
const KEY: usize = 14;
const BASE_TIMESTAMP: i64 = 1_700_000_000_000;

/// Writes a log of so many bytes of records before compression, and says how many records that are. Batches are as a producer
/// makes them: 16 KiB as sent, which is four times as much before compression.
pub(crate) fn write_log(path: &Path, codec: Codec, bytes: usize) -> u64 {
    let per_batch = if codec == Codec::None { 16 } else { 64 } * 1024 / RECORD;
    let records = bytes / RECORD;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path).unwrap());
    let mut compressor = Compressor::new();
    let mut numbers = Numbers(1);
    let (mut plain, mut batch) = (Vec::new(), Vec::new());
    let mut first = 0;
    while first < records {
        let count = per_batch.min(records - first);
        plain.clear();
        batch.clear();
        for index in 0..count {
            push_record(&mut plain, first + index, index, &mut numbers);
        }
        let compressed = compressor.compress(codec, Lz4Checksum::Verified, Level::Default, &plain).unwrap();
        encode_batch(&fields(codec, first, count), compressed, &mut batch).unwrap();
        file.write_all(&batch).unwrap();
        first += count;
    }
    file.flush().unwrap();
    records as u64
}

fn fields(codec: Codec, first: usize, count: usize) -> BatchFields {
    let last = i32::try_from(count - 1).unwrap();
    BatchFields {
        base_offset: Offset(i64::try_from(first).unwrap()),
        last_offset_delta: last,
        leader_epoch: None,
        attributes: Attributes(codec.id().into()),
        base_timestamp: Some(TimestampMs(BASE_TIMESTAMP)),
        max_timestamp: Some(TimestampMs(BASE_TIMESTAMP + i64::from(last.min(63)))),
        producer_id: None,
        producer_epoch: None,
        base_sequence: None,
        records_count: last + 1,
    }
}

fn push_record(out: &mut Vec<u8>, number: usize, index: usize, numbers: &mut Numbers) {
    let start = out.len();
    let key = format!("order-{:08}", numbers.next() % 100_000_000);
    let delta = i32::try_from(index).unwrap();
    let around = AROUND_VALUE + usize::from(index > 63);
    let value = value(number, RECORD - around, numbers);
    let deltas = Deltas { timestamp: (index % 64) as i64, offset: delta };
    encode_record(deltas, (Some(key.as_bytes()), Some(value.as_bytes())), &Headers::default(), out).unwrap();
    assert_eq!(out.len() - start, RECORD);
}

/// JSON with the repetition and the quotes of real data, filled up to a size.
fn value(number: usize, size: usize, numbers: &mut Numbers) -> String {
    const STATES: [&str; 4] = ["placed", "paid", "shipped", "delivered"];
    const CITIES: [&str; 5] = ["London", "Zürich", "São Paulo", "Osaka", "Nairobi"];
    let mut text = format!(
        r#"{{"id":{number},"customer":"c-{:06}","state":"{}","city":"{}","total":{}.{:02},"items":["#,
        numbers.next() % 1_000_000,
        STATES[numbers.below(4)],
        CITIES[numbers.below(5)],
        numbers.next() % 1000,
        numbers.next() % 100,
    );
    while text.len() + 60 < size {
        text += &format!(
            r#"{{"sku":"{:08x}","count":{},"price":{}}},"#,
            numbers.next() & 0xffff_ffff,
            numbers.next() % 9 + 1,
            numbers.next() % 10_000
        );
    }
    text += "{}],\"note\":\"";
    while text.len() + 2 < size {
        text.push(char::from(b'a' + u8::try_from(numbers.below(26)).unwrap()));
    }
    text.truncate(size - 2);
    text + "\"}"
}

/// Numbers that look random and are the same in each run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound).unwrap()
    }
}
