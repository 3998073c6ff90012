//! `.kafka_cleanshutdown`: that the last stop was clean (`CleanShutdownFileHandler`).

use serde_json::Value;

/// The marker's content. That the file exists is what counts; nothing in it can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CleanShutdownMarker {
    /// What kind of content it is.
    pub content: MarkerContent,
    /// The epoch of the broker when it stopped; -1 where there was none. Kept from 3.7 on.
    pub broker_epoch: Option<i64>,
}

/// What a marker holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MarkerContent {
    /// 0 bytes, as up to 3.6.
    Empty,
    /// JSON, as from 3.7 on.
    Json,
    /// Neither; a broker takes no notice.
    Garbage,
}

impl CleanShutdownMarker {
    /// Reads the marker.
    ///
    /// ```
    /// use segtool::format::checkpoint::CleanShutdownMarker;
    ///
    /// let marker = CleanShutdownMarker::parse(br#"{"version":0,"brokerEpoch":77}"#);
    /// assert_eq!(marker.broker_epoch, Some(77));
    /// ```
    pub fn parse(data: &[u8]) -> Self {
        if data.is_empty() {
            return Self { content: MarkerContent::Empty, broker_epoch: None };
        }
        match first_json_value(data) {
            Some(Value::Object(fields)) => {
                let is_sound =
                    fields.get("version").is_none_or(|version| version.is_null() || java_long(version).is_some());
                let broker_epoch = fields.get("brokerEpoch").filter(|_| is_sound).and_then(java_long);
                Self { content: MarkerContent::Json, broker_epoch }
            }
            _ => Self { content: MarkerContent::Garbage, broker_epoch: None },
        }
    }
}

/// The first JSON value of some text; what follows it is not looked at, as by Jackson.
pub(super) fn first_json_value(data: &[u8]) -> Option<Value> {
    serde_json::Deserializer::from_slice(data).into_iter().next()?.ok()
}

/// A number as Jackson coerces it to a long: a fraction is cut off, and text of digits will do.
fn java_long(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // What is beyond an i64 is no long; what has a fraction is one without.
            let number = number.as_f64().filter(|number| number.abs() < 9.2e18)?;
            format!("{:.0}", number.trunc()).parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_epoch_is_read_as_kafka_reads_it() {
        // Each as read by CleanShutdownFileHandler of 4.4.0.
        for (text, content, broker_epoch) in [
            ("", MarkerContent::Empty, None),
            (r#"{"version":0,"brokerEpoch":-1}"#, MarkerContent::Json, Some(-1)),
            (r#"{"version":0,"brokerEpoch":77}"#, MarkerContent::Json, Some(77)),
            (r#"{"version":0,"brokerEpoch":77,"x":1}"#, MarkerContent::Json, Some(77)),
            (r#"{"version":1,"brokerEpoch":77}"#, MarkerContent::Json, Some(77)),
            (r#"{"brokerEpoch":77}"#, MarkerContent::Json, Some(77)),
            (r#"{"version":0}"#, MarkerContent::Json, None),
            (r#"{"version":0,"brokerEpoch":"77"}"#, MarkerContent::Json, Some(77)),
            (r#"{"version":0,"brokerEpoch":"x"}"#, MarkerContent::Json, None),
            (r#"{"version":0,"brokerEpoch":7.5}"#, MarkerContent::Json, Some(7)),
            (r#"{"version":0,"brokerEpoch":null}"#, MarkerContent::Json, None),
            (r#"{"version":0,"brokerEpoch":77} garbage"#, MarkerContent::Json, Some(77)),
            ("{\"version\":0,\"brokerEpoch\":77}\n", MarkerContent::Json, Some(77)),
            (r#"{"version":"x","brokerEpoch":77}"#, MarkerContent::Json, None),
            (r#"{"version":0,"brokerEpoch":99999999999999999999}"#, MarkerContent::Json, None),
            ("garbage", MarkerContent::Garbage, None),
            ("[]", MarkerContent::Garbage, None),
            ("null", MarkerContent::Garbage, None),
        ] {
            let marker = CleanShutdownMarker::parse(text.as_bytes());
            assert_eq!(marker, CleanShutdownMarker { content, broker_epoch }, "{text:?}");
        }
        assert_eq!(CleanShutdownMarker::parse(b"\xff\0").content, MarkerContent::Garbage);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_marker(data in proptest::collection::vec(any::<u8>(), 0..60)) {
            let marker = CleanShutdownMarker::parse(&data);
            prop_assert_eq!(marker.content == MarkerContent::Empty, data.is_empty());
        }
    }
}
