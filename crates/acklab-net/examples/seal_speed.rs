//! CPU time that sealing and opening reliable UDP's packets costs, as medians of seven runs:
//!
//!     cargo run --release -p acklab-net --example seal_speed

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("CPU time is measured on Linux alone");
}

#[cfg(target_os = "linux")]
mod linux {
    use acklab_core::rudp::protect::{Phase, Protection};
    use acklab_net::rudp::seal::{Cipher, Keys, SECRET};
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    use zeroize::Zeroizing;

    pub(crate) fn main() {
        for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
            let (seal, open) = ns_per_packet(cipher);
            println!(
                "{cipher:?}: {DATAGRAM} B: seal {seal:.0} ns, open {open:.0} ns; {:.3} and {:.3} CPU s per GB \
                 of payload",
                seal / PAYLOAD,
                open / PAYLOAD
            );
        }
    }

    /// Median CPU time of (seal, open).
    fn ns_per_packet(cipher: Cipher) -> (f64, f64) {
        let secret = Zeroizing::new([7; SECRET]);
        let mut sender = Keys::new(cipher, secret.clone(), &secret);
        let mut receiver = Keys::new(cipher, secret.clone(), &secret);
        let mut bodies = vec![[0; DATAGRAM - HEADER.len()]; BATCH];
        let mut number = 0;
        let mut runs: Vec<(f64, f64)> = Vec::new();
        for _ in 0..RUNS {
            let (mut seal, mut open) = (0, 0);
            for _ in 0..BATCHES {
                let start = cpu_us();
                for (at, body) in bodies.iter_mut().enumerate() {
                    sender.seal(0, number + at as u64, HEADER, body);
                }
                let between = cpu_us();
                for (at, body) in bodies.iter_mut().enumerate() {
                    assert!(receiver.open(Phase::Current, 0, number + at as u64, HEADER, body));
                }
                (seal, open) = (seal + between - start, open + cpu_us() - between);
                number += BATCH as u64;
            }
            let ns = |us: i64| us as f64 * 1e3 / (BATCH * BATCHES) as f64;
            runs.push((ns(seal), ns(open)));
        }
        let median = |of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[RUNS / 2]
        };
        (median(|run| run.0), median(|run| run.1))
    }

    fn cpu_us() -> i64 {
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the process's own usage");
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    }

    /// Of the search for a path's datagram size, docs/rudp.md section 2.
    const DATAGRAM: usize = 1452;
    /// Of a stream, in such a datagram.
    const PAYLOAD: f64 = 1416.0;
    const HEADER: &[u8] = &[0; 14];
    const BATCH: usize = 256;
    const BATCHES: usize = 400;
    const RUNS: usize = 7;
}
