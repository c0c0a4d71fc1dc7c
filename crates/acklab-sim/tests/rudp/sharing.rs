//! One flow of reliable UDP beside cross traffic that does not give way to loss, and beside flows that do: it shares with the
//! former and leaves the latter their own. The whole table is docs/lossy.md's.

use crate::coupled::{Case, Rival, run, shares};

/// Share, 1 is fair: least, median and most of three seeds, 60 s.
fn beside(rtt_ms: u64, rival: &'static str, count: usize) -> [f64; 3] {
    let rivals = vec![Rival::Tcp(rival); count];
    // A queue of one bandwidth-delay product.
    let shares = shares(&Case { rtt_ms, queue_ms: rtt_ms, rivals, paths: 1 });
    println!("{rtt_ms} ms, {count} {rival}: {shares:.2?}");
    shares
}

#[test]
fn a_flow_holds_its_own_beside_one_that_does_not_heed_loss() {
    // Beside one, 0.10 where loss alone decides.
    assert!(beside(10, "bbr1", 1)[1] >= 0.5);
    assert!(beside(10, "bbr1", 4)[1] >= 0.4);
}

#[test]
fn it_does_not_take_the_places_in_a_full_queue_of_those_that_send_two_at_once() {
    let rivals = vec![Rival::Linux("reno"); 4];
    let shares = shares(&Case { rtt_ms: 40, queue_ms: 40, rivals, paths: 1 });
    println!("4 Linux Reno: {shares:.2?}");
    assert!(shares[1] <= 1.4, "{shares:?}");
}

#[test]
fn flows_that_heed_loss_keep_their_share() {
    for rival in ["reno", "cubic"] {
        assert!(beside(10, rival, 1)[1] <= 1.3);
        assert!(beside(10, rival, 4)[1] <= 1.8);
    }
}

/// One that begins in a full queue takes the queue for the path, and what overflows for the path's own loss, until others
/// give way: then both have to go, or it takes all (Jain's index 0.22 to 0.69).
#[test]
fn five_of_its_kind_share_a_short_queue() {
    let case = Case { rtt_ms: 100, queue_ms: 20, rivals: vec![Rival::Rudp; 4], paths: 1 };
    let jain = |rates: &[f64]| {
        let sum: f64 = rates.iter().sum();
        sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
    };
    let mut indices = [1, 2, 3, 4, 5].map(|seed| jain(&run(&case, seed)));
    println!("five of its kind: {indices:.3?}");
    indices.sort_by(f64::total_cmp);
    assert!(indices[0] >= 0.6 && indices[2] >= 0.85, "{indices:.3?}");
}
