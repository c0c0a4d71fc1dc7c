//! CPU time that reliable UDP's packets and handshakes cost, as medians of seven runs:
//!
//!     cargo run --release -p acklab-net --example rudp_protection_speed

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
    use acklab_net::rudp::keys::Identity;
    use acklab_net::rudp::noise::{KeysClient, KeysServer, PassphraseClient, PassphraseServer};
    use acklab_net::rudp::passphrase::Passphrase;
    use acklab_net::rudp::peers::KnownPeers;
    use acklab_net::rudp::seal::{Cipher, Keys, SECRET};
    use acklab_rudp::protect::{ClientGreeter, Offer, Phase, Protection, ServerGreeter};
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
        let passphrase = Passphrase::generate();
        let mut server = PassphraseServer::new(passphrase.clone());
        let client =
            || Box::new(PassphraseClient::new(passphrase.clone())) as Box<dyn ClientGreeter>;
        print_handshake("passphrase", &client, &mut server);

        let (identity, of_server) = (Identity::generate(), Identity::generate());
        let mut peers = KnownPeers::default();
        peers.insert(identity.public(), "client");
        let key = of_server.public();
        let client = || Box::new(KeysClient::new(identity.clone(), key)) as Box<dyn ClientGreeter>;
        print_handshake("keys", &client, &mut KeysServer::new(of_server, peers));
    }

    /// CPU time of each end's part of a handshake.
    fn print_handshake(
        name: &str,
        client: &dyn Fn() -> Box<dyn ClientGreeter>,
        server: &mut dyn ServerGreeter,
    ) {
        let (mut of_clients, mut of_servers) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let (mut of_client, mut of_server) = (0, 0);
            for _ in 0..HANDSHAKES {
                let start = cpu_us();
                let mut client = client();
                let message = client.initial(&[0; 23], &[0; 64]);
                let sent = cpu_us();
                let offer = Offer {
                    mode: client.mode(),
                    ciphers: 3,
                    prologue: &[0; 23],
                    message: &message,
                };
                let Ok(answer) = server.greet(&offer, &mut |_| vec![0; 85]) else {
                    panic!("the secrets fit")
                };
                let greeted = cpu_us();
                assert!(client.answer(answer.cipher, &answer.message).is_ok());
                of_client += cpu_us() - greeted + sent - start;
                of_server += greeted - sent;
            }
            of_clients.push(of_client / HANDSHAKES);
            of_servers.push(of_server / HANDSHAKES);
        }
        of_clients.sort_unstable();
        of_servers.sort_unstable();
        let (client, server) = (of_clients[RUNS / 2], of_servers[RUNS / 2]);
        println!("handshake with {name}: client {client} us, server {server} us");
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
    const HANDSHAKES: i64 = 200;
}
