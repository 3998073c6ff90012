//! Layer 1: directories as Kafka lays them out. Opens files for reading only and gives no verdicts.
