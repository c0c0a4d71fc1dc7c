//! acklab: finds, predicts and fixes what acknowledgment timing does to an application.
//!
//! A thin door over the libraries: each verb has a file here that turns arguments into a call and the
//! result into text or JSON. Exit 0 fine, 1 a check did not hold, 2 unusable input or arguments,
//! 3 not decided or ended early.

mod anonymous;
#[cfg(target_os = "linux")]
mod bpf;
#[cfg(target_os = "linux")]
mod compare;
mod completions;
#[cfg(target_os = "linux")]
mod dataset;
mod demo;
mod diagnose;
#[cfg(target_os = "linux")]
mod emulate;
mod export;
mod file;
#[cfg(target_os = "linux")]
mod fix;
mod help;
#[cfg(target_os = "linux")]
mod invitation;
mod kernel;
mod man;
mod names;
mod outcome;
mod packetdrill;
mod piped;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod recv;
mod reproduce;
mod run;
mod scenarios;
#[cfg(target_os = "linux")]
mod secret;
#[cfg(target_os = "linux")]
mod send;
mod set;
#[cfg(target_os = "linux")]
mod tcp;
#[cfg(target_os = "linux")]
mod transfer;
mod verify;
#[cfg(target_os = "linux")]
mod watch;
mod whatif;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Finds, predicts and fixes what acknowledgment timing does to an application.
#[derive(Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Diagnose(diagnose::Diagnose),
    #[command(name = "whatif")]
    WhatIf(whatif::WhatIf),
    #[cfg(target_os = "linux")]
    Watch(watch::Watch),
    #[cfg(target_os = "linux")]
    Fix(fix::Fix),
    Run(run::Run),
    Scenarios(scenarios::Scenarios),
    Verify(verify::Verify),
    Reproduce(reproduce::Reproduce),
    Packetdrill(packetdrill::Packetdrill),
    Demo(demo::Demo),
    Export(export::Export),
    #[cfg(target_os = "linux")]
    Record(record::Record),
    #[cfg(target_os = "linux")]
    Send(send::Send),
    #[cfg(target_os = "linux")]
    Recv(recv::Recv),
    #[cfg(target_os = "linux")]
    Tcp(tcp::Tcp),
    #[cfg(target_os = "linux")]
    Emulate(emulate::Emulate),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EmulateInit(emulate::EmulateInit),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RdtHost(reproduce::RdtHost),
    #[cfg(target_os = "linux")]
    Compare(compare::Compare),
    #[cfg(target_os = "linux")]
    Dataset(dataset::Dataset),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxVtKeeper(compare::Keeper),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxVtKernel(compare::Kernel),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LinuxVtGuest(compare::Guest),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    KernelSender(kernel::Sender),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    KernelReceiver(kernel::Receiver),
    #[cfg(target_os = "linux")]
    Bpf(bpf::Bpf),
    Completions(completions::Completions),
    Man(man::Man),
}

fn main() -> ExitCode {
    let columns = help::columns();
    if let Some(columns) = columns {
        acklab_lab::report::text::set_width(columns);
        acklab_trace::set_text_width(columns);
    }
    let outcome = match help::parse::<Cli>(Cli::command(), columns).verb {
        Verb::Diagnose(verb) => verb.run(),
        Verb::WhatIf(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Watch(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Fix(verb) => verb.run(),
        Verb::Run(verb) => verb.run(),
        Verb::Scenarios(verb) => verb.run(),
        Verb::Verify(verb) => verb.run(),
        Verb::Reproduce(verb) => verb.run(),
        Verb::Packetdrill(verb) => verb.run(),
        Verb::Demo(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Record(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Send(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Recv(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Tcp(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Emulate(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::EmulateInit(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::RdtHost(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Compare(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Dataset(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::LinuxVtKeeper(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::LinuxVtKernel(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::LinuxVtGuest(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::KernelSender(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::KernelReceiver(verb) => verb.run(),
        #[cfg(target_os = "linux")]
        Verb::Bpf(verb) => verb.run(),
        Verb::Completions(verb) => verb.run(&mut Cli::command()),
        Verb::Man(verb) => verb.run(Cli::command()),
    };
    outcome::exit_code(outcome)
}

const EXAMPLES: &str = "\
Examples:
  acklab diagnose slow.pcapng                  why are my small messages late, and what do I change?
  sudo acklab watch --port 4712                are they late right now, and which process is it?
  sudo acklab fix --port 4712 --nodelay        mend it without touching the program
  acklab run nagle-delack --set receiver=windows-7 rtt=10ms
                                               what would another receiver do?
  acklab scenarios nagle-delack                what can be set, and what is measured?

Exit status: 0 fine, 1 a check did not hold, 2 unusable input or arguments, 3 not decided or ended early.";
