//! What both processes of a run do alike.

use std::env;
use std::io;
use std::net::IpAddr;

use acklab_net::schedule_first_in_first_out;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};

/// The address that the emulator says in the environment.
pub(super) fn address_in(variable: &str) -> io::Result<IpAddr> {
    let address = env::var(variable).ok().and_then(|address| address.parse().ok());
    address.ok_or_else(|| io::Error::other(format!("{variable} says no address")))
}

/// What a process of a run writes to standard output: its result, or its reason.
pub(super) fn tell<T: serde::Serialize>(outcome: io::Result<T>) -> i32 {
    let outcome = outcome.map_err(|error| error.to_string());
    match serde_json::to_writer(io::stdout().lock(), &outcome) {
        Ok(()) if outcome.is_ok() => 0,
        _ => 1,
    }
}

/// Asks for the processor in time from now on; whether it is given. Who does not let it go for [`LONGEST_HOLD`] is ended by the
/// kernel (setrlimit(2), `RLIMIT_RTTIME`), so that a mistake never takes the machine.
pub(super) fn run_in_time() -> bool {
    let _ = prctl::set_timerslack(1);
    setrlimit(Resource::RLIMIT_RTTIME, LONGEST_HOLD, 5 * LONGEST_HOLD).is_ok()
        && schedule_first_in_first_out(PRIORITY).is_ok()
}

/// The longest that a process of a run holds the processor without a pause, us; it needs some ten.
const LONGEST_HOLD: u64 = 200_000;
/// The sender's port.
pub(super) const PORT: u16 = 5000;
/// Below the emulator's, above everything else.
const PRIORITY: i32 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::Signal;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    const ROLE: &str = "ACKLAB_TEST_SPIN";

    #[test]
    #[ignore = "the next test runs it as a process"]
    fn a_process_that_never_pauses() {
        if env::var_os(ROLE).is_some() && run_in_time() {
            loop {
                std::hint::spin_loop();
            }
        }
    }

    #[test]
    fn who_holds_the_processor_in_real_time_is_ended() {
        let mut spinner = Command::new(env::current_exe().unwrap());
        spinner.args([
            "--ignored",
            "--exact",
            "kernel::process::tests::a_process_that_never_pauses",
        ]);
        // One thread, so that the limit is reached where it is set.
        let status = spinner.env(ROLE, "1").stdout(Stdio::null()).status().unwrap();
        if status.success() {
            eprintln!("SKIPPED: real-time scheduling is not permitted here");
            return;
        }
        assert_eq!(status.signal(), Some(Signal::SIGXCPU as i32));
    }
}
