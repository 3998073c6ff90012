//! The table of record schemas: `schemas.tsv` (Kafka 4.4.0) and `schemas-older.tsv` (layouts that other releases wrote under the
//! same type and version, and record types that 4.4.0 no longer has).
//!
//! One row is one field, in depth-first order of declaration, which is the order on the wire and in Kafka's JSON. A path such as
//! `members[].clientId` steps into the elements of the array `members`. `-` stands for none. `0-3`, `2+` and `1` are versions.

use std::sync::LazyLock;

use super::InternalTopic;

const CURRENT: &str = include_str!("schemas.tsv");
const OLDER: &str = include_str!("schemas-older.tsv");

/// Structures that several fields share; Kafka's readers do not check the version for these (`Can't read version`).
const SHARED_STRUCTURES: [&str; 9] = [
    "Endpoint",
    "KeyValue",
    "LastAssignmentConfig",
    "MemberMetadata",
    "TaskIds",
    "TopicConfig",
    "TopicInfo",
    "TopicPartitions",
    "TopicPartitionsInfo",
];

/// A range of versions, both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Versions {
    pub(super) lowest: i16,
    pub(super) highest: i16,
}

impl Versions {
    pub(super) fn contains(self, version: i16) -> bool {
        (self.lowest..=self.highest).contains(&version)
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(lowest) = text.strip_suffix('+') {
            return Some(Self { lowest: lowest.parse().ok()?, highest: i16::MAX });
        }
        let (lowest, highest) = text.split_once('-').unwrap_or((text, text));
        Some(Self { lowest: lowest.parse().ok()?, highest: highest.parse().ok()? })
    }
}

/// What a schema describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A coordinator record's key.
    Key,
    /// A coordinator record's value, or a control record's.
    Value,
    /// A framed record.
    Data,
    /// Bytes inside another message.
    Embedded,
}

/// The type of a field or of an array's elements.
#[derive(PartialEq, Debug)]
pub(super) enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Text,
    Bytes,
    Uuid,
    Struct { name: &'static str, fields: Vec<Field>, checks_version: bool },
    Array(Box<Type>),
}

/// The value that an absent tagged field has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Default {
    Null,
    /// The type's own: false, empty text, array or bytes, the zero UUID, a structure of defaults.
    Empty,
    Int(i64),
}

/// A field as its schema declares it.
#[derive(PartialEq, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Type,
    pub(super) versions: Versions,
    pub(super) nullable: Option<Versions>,
    pub(super) tagged: Option<(u32, Versions)>,
    pub(super) default: Default,
}

/// A message as its schema declares it.
#[derive(PartialEq, Debug)]
pub(super) struct Schema {
    pub(super) topic: Option<InternalTopic>,
    pub(super) record: &'static str,
    pub(super) role: Role,
    pub(super) type_id: i16,
    pub(super) versions: Versions,
    pub(super) flexible: Option<Versions>,
    pub(super) fields: Vec<Field>,
    /// The releases that wrote this layout, newest first; empty for 4.4.0's.
    pub(super) releases: &'static str,
}

impl Schema {
    /// The version whose fields a stored version is read with: the nearest that the schema has, as Kafka's readers do.
    pub(super) fn nearest(&self, stored: i16) -> i16 {
        stored.clamp(self.versions.lowest, self.versions.highest)
    }

    pub(super) fn is_flexible(&self, version: i16) -> bool {
        self.flexible.is_some_and(|versions| versions.contains(version))
    }
}

struct Row {
    topic: &'static str,
    record: &'static str,
    role: &'static str,
    type_id: &'static str,
    versions: &'static str,
    flexible: &'static str,
    path: &'static str,
    field_type: &'static str,
    field_versions: &'static str,
    nullable: &'static str,
    tagged: &'static str,
    tag: &'static str,
    default: &'static str,
    releases: &'static str,
}

impl Row {
    fn parse(line: &'static str, releases: &'static str) -> Option<Self> {
        let mut columns = line.split('\t');
        let mut next = || columns.next();
        Some(Self {
            topic: next()?,
            record: next()?,
            role: next()?,
            type_id: next()?,
            versions: next()?,
            flexible: next()?,
            path: next()?,
            field_type: next()?,
            field_versions: next()?,
            nullable: next()?,
            tagged: next()?,
            tag: next()?,
            default: next()?,
            releases,
        })
    }

    fn belongs_with(&self, other: &Self) -> bool {
        self.record == other.record && self.role == other.role && self.releases == other.releases
    }

    /// A copy of the row's field, with those of the rows below its path.
    fn field(&self, prefix: &str, below: &[Self]) -> Option<Field> {
        let tagged = match Versions::parse(self.tagged) {
            Some(versions) => Some((self.tag.parse().ok()?, versions)),
            None => None,
        };
        let versions = Versions::parse(self.field_versions)?;
        Some(Field {
            name: self.path.get(prefix.len()..)?,
            kind: self.kind(versions, below)?,
            versions,
            nullable: Versions::parse(self.nullable),
            tagged,
            default: match self.default {
                "null" => Default::Null,
                text => text.parse().map_or(Default::Empty, Default::Int),
            },
        })
    }

    fn kind(&self, versions: Versions, below: &[Self]) -> Option<Type> {
        let (name, is_array) = self.field_type.strip_prefix("[]").map_or((self.field_type, false), |name| (name, true));
        let kind = match name {
            "bool" => Type::Bool,
            "int8" => Type::Int8,
            "int16" => Type::Int16,
            "uint16" => Type::Uint16,
            "int32" => Type::Int32,
            "uint32" => Type::Uint32,
            "int64" => Type::Int64,
            "float64" => Type::Float64,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "uuid" => Type::Uuid,
            structure => {
                let prefix = format!("{}{}", self.path, if is_array { "[]." } else { "." });
                let checks_version = versions.highest == i16::MAX && !SHARED_STRUCTURES.contains(&structure);
                Type::Struct { name: structure, fields: fields_of(below, &prefix)?, checks_version }
            }
        };
        Some(if is_array { Type::Array(Box::new(kind)) } else { kind })
    }

    fn schema(&self, rows: &[Self]) -> Option<Schema> {
        Some(Schema {
            topic: InternalTopic::by_name(self.topic),
            record: self.record,
            role: match self.role {
                "key" => Role::Key,
                "value" => Role::Value,
                "data" => Role::Data,
                _ => Role::Embedded,
            },
            type_id: self.type_id.parse().unwrap_or(-1),
            versions: Versions::parse(self.versions)?,
            flexible: Versions::parse(self.flexible),
            fields: fields_of(rows, "")?,
            releases: self.releases,
        })
    }
}

fn fields_of(mut rows: &[Row], prefix: &str) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while let Some((row, rest)) = rows.split_first() {
        if row.path == "-" {
            break;
        }
        let is_below = |other: &&Row| {
            other.path.strip_prefix(row.path).is_some_and(|rest| rest.starts_with("[].") || rest.starts_with('.'))
        };
        let (below, after) = rest.split_at_checked(rest.iter().take_while(is_below).count())?;
        fields.push(row.field(prefix, below)?);
        rows = after;
    }
    Some(fields)
}

fn parse(rows: &[Row]) -> Vec<Schema> {
    rows.chunk_by(Row::belongs_with).filter_map(|block| block.first()?.schema(block)).collect()
}

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let current = CURRENT.lines().skip(1).filter_map(|line| Row::parse(line, ""));
    let older = OLDER.lines().skip(1).filter_map(|line| {
        let (releases, rest) = line.split_once('\t')?;
        Row::parse(rest, releases)
    });
    parse(&current.chain(older).collect::<Vec<_>>())
});

/// All schemas of one type of record: 4.4.0's first, then the older layouts from newest to oldest.
pub(super) fn schemas_of(topic: InternalTopic, role: Role, type_id: i16) -> impl Iterator<Item = &'static Schema> {
    SCHEMAS.iter().filter(move |schema| schema.topic == Some(topic) && schema.role == role && schema.type_id == type_id)
}

/// 4.4.0's schema of this name.
pub(super) fn schema_named(record: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.record == record && schema.releases.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(fields: &[Field]) -> usize {
        let below = |field: &Field| match &field.kind {
            Type::Struct { fields, .. } => count(fields),
            Type::Array(element) => match &**element {
                Type::Struct { fields, .. } => count(fields),
                _ => 0,
            },
            _ => 0,
        };
        fields.iter().map(|field| 1 + below(field)).sum()
    }

    #[test]
    fn every_row_of_both_tables_is_a_field_of_one_schema() {
        let fields: usize = SCHEMAS.iter().map(|schema| count(&schema.fields)).sum();
        let rows = CURRENT.lines().skip(1).chain(OLDER.lines().skip(1));
        let without_fields = rows.clone().filter(|row| row.contains("\t-\t-\t-\t-\t-\t-\t-")).count();
        assert_eq!(fields + without_fields, rows.count());
        assert_eq!(without_fields, 2);
    }

    #[test]
    fn all_structures_name_fields_and_no_type_is_unknown() {
        fn check(record: &str, kind: &Type) {
            match kind {
                Type::Struct { name, fields, .. } => {
                    assert!(!fields.is_empty(), "{record}: {name} has no fields");
                    for field in fields {
                        check(record, &field.kind);
                    }
                }
                Type::Array(element) => check(record, element),
                _ => {}
            }
        }
        for schema in SCHEMAS.iter() {
            for field in &schema.fields {
                check(schema.record, &field.kind);
            }
        }
    }

    #[test]
    fn a_tagged_field_stands_at_its_declared_place() {
        let partition = schema_named("PartitionRecord").map(|schema| {
            schema.fields.iter().map(|field| (field.name, field.tagged.map(|(tag, _)| tag))).collect::<Vec<_>>()
        });
        assert_eq!(
            partition.as_ref().and_then(|fields| fields.get(7)).copied(),
            Some(("leaderRecoveryState", Some(0)))
        );
    }
}
