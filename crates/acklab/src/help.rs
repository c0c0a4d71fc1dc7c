//! `--help`: text wraps to the terminal's width, examples never do, so that they can be copied; and what that width is.
//!
//! clap wraps everything between blanks. In indented lines blanks are no-break spaces while it does so, and blanks again
//! when they are printed.

use std::io::{self, IsTerminal, Write};
use std::process;

use clap::error::ErrorKind;
use clap::{Command, FromArgMatches};

/// How many columns there are: what COLUMNS says, as for other programs, else the terminal's; none where neither is.
pub(crate) fn columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let terminal = || {
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(columns.into())
    };
    told.or_else(terminal).filter(|columns| *columns > 0)
}

/// The command line read as `T`; shows help or what is wrong, and ends the program then. Help is so many columns wide.
pub(crate) fn parse<T: FromArgMatches>(command: Command, columns: Option<usize>) -> T {
    let mut command = kept_together(command);
    if let Some(columns) = columns {
        command = command.term_width(columns.min(HELP_WIDTH));
    }
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

/// The text with indented lines as one word each, and the other lines of a paragraph as one line.
fn whole_examples(text: &str) -> String {
    let mut whole = String::new();
    let mut in_paragraph = false;
    for line in text.lines() {
        let is_text = !line.is_empty() && !line.starts_with("  ");
        if !whole.is_empty() {
            whole.push_str(if is_text && in_paragraph { " " } else { "\n" });
        }
        whole.push_str(&if is_text { line.to_owned() } else { line.replace(' ', NO_BREAK) });
        in_paragraph = is_text;
    }
    whole
}

/// Lines of help are no longer, as clap has it.
const HELP_WIDTH: usize = 100;

const NO_BREAK: &str = "\u{a0}";
