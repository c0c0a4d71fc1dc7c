//! `--help`: text wraps to the terminal's width, examples never do, so that they can be copied.
//!
//! clap wraps everything between blanks. In indented lines blanks are no-break spaces while it does so, and blanks again
//! when they are printed.

use std::io::{self, IsTerminal, Write};
use std::process;

use clap::error::ErrorKind;
use clap::{Command, FromArgMatches};

/// The command line read as `T`; shows help or what is wrong, and ends the program then.
pub(crate) fn parse<T: FromArgMatches>(command: Command) -> T {
    let mut command = kept_together(command);
    let read = command.try_get_matches_from_mut(std::env::args_os());
    let read = read.and_then(|matches| T::from_arg_matches(&matches));
    read.unwrap_or_else(|error| {
        if error.kind() != ErrorKind::DisplayHelp {
            error.format(&mut command).exit();
        }
        let has_colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let help = error.render();
        let help = if has_colour { help.ansi().to_string() } else { help.to_string() };
        let _ = io::stdout().write_all(help.replace(NO_BREAK, " ").as_bytes());
        process::exit(0)
    })
}

fn kept_together(command: Command) -> Command {
    let short = command.get_after_help().map(|text| whole_examples(&text.to_string()));
    let long = command.get_after_long_help().map(|text| whole_examples(&text.to_string()));
    let command = command.mut_subcommands(kept_together);
    match (short, long) {
        (Some(short), Some(long)) => command.after_help(short).after_long_help(long),
        (Some(short), None) => command.after_help(short),
        (None, Some(long)) => command.after_long_help(long),
        (None, None) => command,
    }
}

/// The text with indented lines as one word each.
fn whole_examples(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("  ") { line.replace(' ', NO_BREAK) } else { line.to_owned() }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

const NO_BREAK: &str = "\u{a0}";
