fn main() {
    for path in std::env::args().skip(1) {
        let d = acklab_trace::diagnose(path.as_ref(), &acklab_trace::Options::default(), |_| {}).unwrap();
        println!("== {path}: {:?} {}", d.verdict.state, d.verdict.confidence);
        for f in &d.flows { for d in &f.directions {
            println!("{} > {} seg {} nagle {:?} {:.3} {:?} far {:?} near {:?} holds {} s {:.3} small {} policy {:?} {:?}", d.from, d.to, d.segments, d.nagle.state, d.nagle.confidence, d.nagle.evidence, d.rtt_to_sender_ms, d.rtt_to_receiver_ms, d.holds(), d.stalled_s(), d.small_holds, d.receiver_policy.kind, d.receiver_policy.timer_ms);
            for s in &d.stalls { println!("   {:?} {} {:.3}", s.mechanism, s.count, s.seconds); }
        }}
    }
}
