//! `quorum-state`: leader and vote of a node of the metadata quorum (`FileQuorumStateStore`).

use serde_json::{Map, Value};

use super::clean_shutdown::first_json_value;
use super::lines::java_lines;
use crate::format::{FormatError, FormatErrorKind, LeaderEpoch, Lenient, Position, Shape, Uuid};

/// Leader and vote. `None` stands for -1 and for a field that the version does not have.
///
/// Version 0 has `cluster_id`, `applied_offset` and `current_voters`; version 1 (3.9 and later) has `voted_directory_id`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QuorumState {
    /// Version of the data.
    pub data_version: i16,
    /// The cluster, written empty.
    pub cluster_id: Option<String>,
    /// The leader.
    pub leader_id: Option<i32>,
    /// The leader's epoch.
    pub leader_epoch: LeaderEpoch,
    /// Whom this node voted for in the epoch.
    pub voted_id: Option<i32>,
    /// The directory id of the one voted for; zero for none.
    pub voted_directory_id: Option<Uuid>,
    /// Written 0.
    pub applied_offset: Option<i64>,
    /// The voters' ids.
    pub current_voters: Option<Vec<i32>>,
}

impl QuorumState {
    /// Reads the state: one JSON object on the first line, the rest of the file is not looked at. A node that cannot read it exits, at
    /// every start.
    ///
    /// ```
    /// use segtool::format::checkpoint::QuorumState;
    ///
    /// let text = br#"{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}"#;
    /// let state = QuorumState::parse(text).strict().unwrap();
    /// assert_eq!((state.leader_id, state.voted_id), (None, Some(1)));
    /// ```
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let mut content = Self::default();
        let read = content.read(data);
        Lenient { content, fault: read.err() }
    }

    fn read(&mut self, data: &[u8]) -> Result<(), FormatError> {
        let text = String::from_utf8_lossy(data);
        let line = java_lines(&text).next().map(|line| line.text.as_bytes());
        let end = FormatErrorKind::UnexpectedEnd { shape: Shape::TextFile, needed: 1, available: 0 };
        let Some(Value::Object(fields)) = first_json_value(line.ok_or(fault(end))?) else {
            return Err(fault(FormatErrorKind::MalformedLine { line: 1, expected: "a JSON object" }));
        };
        let version = fields.get("data_version").ok_or(missing("data_version"))?;
        self.data_version = version.as_i64().and_then(|version| i16::try_from(version).ok()).unwrap_or(0);
        if !(0..=1).contains(&self.data_version) {
            let found = i64::from(self.data_version);
            return Err(fault(FormatErrorKind::UnknownValue { shape: Shape::TextFile, field: "data_version", found }));
        }
        self.leader_id = int(&fields, "leaderId")?.filter(|id| *id != -1);
        self.leader_epoch = LeaderEpoch(int(&fields, "leaderEpoch")?.unwrap_or(-1));
        self.voted_id = int(&fields, "votedId")?.filter(|id| *id != -1);
        if self.data_version == 0 { self.read_version_0(&fields) } else { self.read_version_1(&fields) }
    }

    fn read_version_0(&mut self, fields: &Map<String, Value>) -> Result<(), FormatError> {
        let cluster_id = fields.get("clusterId").ok_or(missing("clusterId"))?;
        self.cluster_id = Some(cluster_id.as_str().ok_or(malformed("text in clusterId"))?.to_owned());
        self.applied_offset = Some(long(fields, "appliedOffset")?);
        // Null is allowed by the schema, and then ends the start all the same.
        let voters = fields.get("currentVoters").ok_or(missing("currentVoters"))?;
        let voters = voters.as_array().ok_or(malformed("a list in currentVoters"))?;
        let voters = voters.iter().map(|voter| {
            let fields = voter.as_object().ok_or(malformed("an object for each voter"))?;
            int(fields, "voterId").map(|id| id.unwrap_or(-1))
        });
        self.current_voters = Some(voters.collect::<Result<_, _>>()?);
        Ok(())
    }

    fn read_version_1(&mut self, fields: &Map<String, Value>) -> Result<(), FormatError> {
        let text = fields.get("votedDirectoryId").ok_or(missing("votedDirectoryId"))?;
        let id = text.as_str().and_then(Uuid::parse);
        let not_an_id = FormatErrorKind::NotAnId { line: 1, field: "votedDirectoryId" };
        self.voted_directory_id = Some(id.ok_or(fault(not_an_id))?);
        Ok(())
    }
}

fn long(fields: &Map<String, Value>, field: &'static str) -> Result<i64, FormatError> {
    let value = fields.get(field).ok_or(missing(field))?;
    value.as_i64().ok_or(fault(FormatErrorKind::NotANumber { line: 1, field }))
}

fn int(fields: &Map<String, Value>, field: &'static str) -> Result<Option<i32>, FormatError> {
    let value = long(fields, field)?;
    i32::try_from(value).map(Some).map_err(|_| fault(FormatErrorKind::NotANumber { line: 1, field }))
}

fn fault(kind: FormatErrorKind) -> FormatError {
    FormatError::new(Position(0), kind)
}

fn missing(field: &'static str) -> FormatError {
    fault(FormatErrorKind::MissingField { shape: Shape::TextFile, field })
}

fn malformed(expected: &'static str) -> FormatError {
    fault(FormatErrorKind::MalformedLine { line: 1, expected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VERSION_0: &str = r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}"#;
    const VERSION_1: &str =
        r#"{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}"#;

    #[test]
    fn both_versions_are_read() {
        let state = QuorumState::parse(VERSION_0.as_bytes()).strict().unwrap();
        let expected = QuorumState {
            data_version: 0,
            cluster_id: Some(String::new()),
            leader_id: Some(1),
            leader_epoch: LeaderEpoch(2),
            voted_id: None,
            voted_directory_id: None,
            applied_offset: Some(0),
            current_voters: Some(vec![1, 2]),
        };
        assert_eq!(state, expected);
        let state = QuorumState::parse(VERSION_1.as_bytes()).strict().unwrap();
        assert_eq!((state.leader_id, state.voted_id, state.leader_epoch), (None, Some(1), LeaderEpoch(2)));
        assert_eq!(state.voted_directory_id.map(|id| id.to_string()).as_deref(), Some("AAECAwQFBgcICQoLDA0ODw"));
    }

    #[test]
    fn kafka_reads_these_files_and_not_those() {
        // Each as taken or refused by FileQuorumStateStore of 4.4.0.
        for (text, is_read) in [
            (format!("{VERSION_1}\ngarbage"), true),
            (format!("{VERSION_1} garbage"), true),
            (VERSION_1.replace("votedId", "extra\":5,\"votedId"), true),
            (VERSION_1.replace("\"leaderEpoch\":2", "\"leaderEpoch\":-2"), true),
            (VERSION_1.replace("\"leaderEpoch\":2", "\"leaderEpoch\":1,\"leaderEpoch\":2"), true),
            (VERSION_1.replace("\"data_version\":1", "\"data_version\":0"), false),
            (VERSION_1.replace("\"data_version\":1", "\"data_version\":2"), false),
            (VERSION_1.replace("\"data_version\":1", "\"data_version\":\"1\""), false),
            (VERSION_1.replace(",\"data_version\":1", ""), false),
            (VERSION_1.replace(",\"votedDirectoryId\":\"AAECAwQFBgcICQoLDA0ODw\"", ""), false),
            (VERSION_1.replace("AAECAwQFBgcICQoLDA0ODw", "x"), false),
            (VERSION_1.replace("\"leaderId\":-1", "\"leaderId\":\"1\""), false),
            (VERSION_1.replace("\"leaderId\":-1", "\"leaderId\":1.5"), false),
            (VERSION_1.replace("\"leaderId\":-1", "\"leaderId\":99999999999"), false),
            (VERSION_0.replace("[{\"voterId\":1},{\"voterId\":2}]", "null"), false),
            (VERSION_0.replace("[{\"voterId\":1},{\"voterId\":2}]", "[{}]"), false),
            (VERSION_0.replace("\"clusterId\":\"\",", ""), false),
            (VERSION_0.replace("\"clusterId\":\"\"", "\"clusterId\":null"), false),
            (VERSION_0.replace("\"clusterId\":\"\"", "\"clusterId\":5"), false),
            ("[]".to_owned(), false),
            ("null".to_owned(), false),
            ("{".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(QuorumState::parse(text.as_bytes()).fault.is_none(), is_read, "{text}");
        }
    }

    #[test]
    fn every_cut_is_a_fault() {
        for text in [VERSION_0, VERSION_1] {
            for len in 0..text.len() {
                assert!(QuorumState::parse(&text.as_bytes()[..len]).fault.is_some(), "{len}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(data in proptest::collection::vec(any::<u8>(), 0..60), at in 0..VERSION_0.len(), byte: u8) {
            let _ = QuorumState::parse(&data);
            let mut flipped = VERSION_0.as_bytes().to_vec();
            flipped[at] = byte;
            let _ = QuorumState::parse(&flipped);
        }
    }
}
