//! The process: argv in, exit status out. Everything else is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    segtool::cli::main()
}
