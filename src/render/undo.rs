//! Applied runs, listed or taken back.

use std::path::Path;

use serde::Serialize;

use super::untrusted::untrusted_path;
use crate::store::{Ending, FoundRun, RunId, RunState};

/// What `undo` has to say.
#[derive(Serialize, Debug)]
pub struct Document {
    schema_version: u32,
    r#type: &'static str,
    runs: Vec<RunJson>,
}

#[derive(Serialize, Debug)]
struct RunJson {
    log_dir: String,
    id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<String>,
}

impl Default for Document {
    fn default() -> Self {
        Self { schema_version: 1, r#type: "undo", runs: Vec::new() }
    }
}

impl Document {
    /// Adds the runs that a log dir has.
    pub fn list(&mut self, log_dir: &Path, runs: &[FoundRun]) {
        self.runs.extend(runs.iter().map(|run| RunJson {
            log_dir: log_dir.to_string_lossy().into_owned(),
            id: run.id.as_str().to_owned(),
            state: match run.state {
                RunState::Complete => "applied",
                RunState::NotBegun => "not-begun",
                RunState::Unfinished => "unfinished",
                RunState::BeingUndone => "being-undone",
                RunState::Undone => "undone",
            },
            journal: Some(run.path.to_string_lossy().into_owned()),
        }));
    }

    /// Adds a run that was ended.
    pub fn ended(&mut self, log_dir: &Path, id: &RunId, ending: Ending) {
        self.runs.push(RunJson {
            log_dir: log_dir.to_string_lossy().into_owned(),
            id: id.as_str().to_owned(),
            state: match ending {
                Ending::Finished => "applied",
                Ending::PutBack => "put-back",
                Ending::NotBegun => "nothing-was-changed",
                Ending::Kept => "kept",
            },
            journal: None,
        });
    }

    /// As a JSON document.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        Ok(text)
    }

    /// For people.
    pub fn human(&self) -> String {
        if self.runs.is_empty() {
            return "no run is waiting to be undone\n".to_owned();
        }
        let mut text = String::new();
        for run in &self.runs {
            let state = match run.state {
                "applied" => "applied; it can be undone",
                "not-begun" => "had not begun to change anything; `undo --unfinished` removes its journal",
                "unfinished" | "being-undone" => "unfinished; `undo --unfinished` ends it",
                "nothing-was-changed" => "ended; it had not changed anything",
                "undone" | "put-back" => "undone: every file is as it was",
                _ => "ended; files that had changed since were kept as they are",
            };
            text.push_str(&format!("{}  {}  {state}\n", run.id, untrusted_path(Path::new(&run.log_dir))));
        }
        text
    }
}
