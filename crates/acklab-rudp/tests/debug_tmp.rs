use acklab_rudp::harness::{attack_network, attack_peers};
use acklab_core::rng::Rng;
#[test]
fn find() {
    let which = std::env::var("WHICH").unwrap_or_default();
    for seed in 0..40u64 {
        let mut rng = Rng::named(seed, "t");
        let n = rng.below(1000) as usize;
        let bytes: Vec<u8> = (0..n).map(|_| rng.next_u64() as u8).collect();
        let r = std::panic::catch_unwind(|| if which == "peers" { attack_peers(&bytes) } else { attack_network(&bytes); });
        if r.is_err() { eprintln!("SEED {seed} algorithm {} bits {}", bytes[0], bytes[1]); }
    }
}
