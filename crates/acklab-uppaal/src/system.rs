//! The instances, the system line and the queries.

use std::fmt::Write as _;

use super::automata::with_serialisation;
use super::constants::{ACK_BYTES, NCS_BYTES, us};
use super::model::Model;
use super::xml::Query;
use acklab_papers::scenario::ance::parameters::Set;

/// The network's processes.
pub(super) fn instances(model: &Model) -> String {
    let Set { network, tcp, control, .. } = &model.set;
    let mut made = Made::default();
    let jitter = us(tcp.host_jitter);
    made.comment("Hosts.");
    made.process("LoopPlant", "Plant()");
    made.process("LoopController", "Controller()");
    for flow in 0..model.flows() {
        let (name, start) = (letter(flow), us(tcp.start_spread * u64::from(flow)));
        made.process(&format!("Transmitter{name}"), &format!("Transmitter({flow}, {start})"));
        made.process(&format!("Receiver{name}"), &format!("Receiver({flow})"));
    }
    made.comment("Routers: the bottleneck's two directions.");
    made.process(
        "R1",
        "Router(0, R1_GETS, R1_SENDS, SEGMENT_BYTES, T_BOTTLENECK_SEGMENT, T_BOTTLENECK_NCS)",
    );
    made.process(
        "R2",
        &format!("Router(1, R2_GETS, R2_SENDS, {ACK_BYTES}, T_BOTTLENECK_ACK, T_BOTTLENECK_NCS)"),
    );
    made.comment("Channels. The bottleneck ends at a router that knows each packet's host.");
    let delay = us(network.delay);
    made.process("BottleneckRight", &format!("Channel(R1_SENDS, R2_FAN, true, {delay}, 0)"));
    made.process("BottleneckLeft", &format!("Channel(R2_SENDS, R1_FAN, true, {delay}, 0)"));
    made.comment(
        "Access links. Where a packet is put on one without a process that waits for it, its delay",
    );
    made.comment(
        "holds that time too: access links are faster than the bottleneck, so none waits there.",
    );
    for flow in 0..model.flows() {
        let name = letter(flow);
        let rx = network.rx_access + control.rx_spread * u64::from(flow);
        let up = us(network.tx_access);
        let to_receiver = with_serialisation(model, u64::from(tcp.packet), rx);
        let from_receiver = with_serialisation(model, ACK_BYTES, rx);
        let to_transmitter = with_serialisation(model, ACK_BYTES, network.tx_access);
        let link = |from: &str, to: &str, delay, jitter| {
            format!("Channel({from}, {to}, false, {delay}, {jitter})")
        };
        let hops = |hop: &str| format!("{hop} + {flow}");
        made.process(&format!("Data{name}1"), &link(&hops("LEFT_SENDS"), "R1_GETS", up, jitter));
        made.process(
            &format!("Data{name}2"),
            &link(&hops("R2_FAN"), &hops("RIGHT_GETS"), to_receiver, 0),
        );
        made.process(
            &format!("Ack{name}1"),
            &link(&hops("RIGHT_SENDS"), "R2_GETS", from_receiver, jitter),
        );
        made.process(
            &format!("Ack{name}2"),
            &link(&hops("R1_FAN"), &hops("LEFT_GETS"), to_transmitter, 0),
        );
    }
    let ncs = us(control.ncs_access);
    let arrival = with_serialisation(model, NCS_BYTES, control.ncs_access);
    made.process("Sample1", &format!("Channel(LEFT_SENDS + FLOWS, R1_GETS, false, {ncs}, 0)"));
    made.process(
        "Sample2",
        &format!("Channel(R2_FAN + FLOWS, RIGHT_GETS + FLOWS, false, {arrival}, 0)"),
    );
    made.process("Command1", &format!("Channel(RIGHT_SENDS + FLOWS, R2_GETS, false, {ncs}, 0)"));
    made.process(
        "Command2",
        &format!("Channel(R1_FAN + FLOWS, LEFT_GETS + FLOWS, false, {arrival}, 0)"),
    );
    made.finish()
}

/// Flow 0 is A.
fn letter(flow: u32) -> char {
    char::from(b'A' + (flow % 26) as u8)
}

#[derive(Default)]
struct Made {
    text: String,
    names: Vec<String>,
}

impl Made {
    fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "// {text}");
    }

    fn process(&mut self, name: &str, instance: &str) {
        let _ = writeln!(self.text, "{name} = {instance};");
        self.names.push(name.into());
    }

    fn finish(mut self) -> String {
        let _ = write!(self.text, "\nsystem {};\n", self.names.join(", "));
        self.text
    }
}

/// What the paper asks of the model, and what shows that the model is sound.
pub(super) fn queries(model: &Model) -> Vec<Query> {
    let end = us(model.set.duration);
    let flows: Vec<_> = (0..model.flows()).map(|flow| format!("cwnd[{flow}]")).collect();
    let queries = [
        (
            format!("Pr[<={end}](<> itae > 8727)"),
            "The paper's Table 4: the probability that ITAE exceeds 8727 rad s. Its intervals are those of \
             alpha = 0.05 and epsilon = 0.05."
                .to_owned(),
        ),
        (
            format!("E[<={end};100](max: itae)"),
            "The mean of the final ITAE, which never falls.".to_owned(),
        ),
        (
            format!("simulate [<={end};1] {{position, target}}"),
            "The motor against its reference (figures 18 to 23). UPPAAL 4.1 writes simulate 1 [<=...]."
                .to_owned(),
        ),
        (
            format!("simulate [<={end};1] {{queue_length[0]}}"),
            "The bottleneck's queue (figures 24 to 29).".to_owned(),
        ),
        (
            format!("simulate [<={end};1] {{{}}}", flows.join(", ")),
            "Congestion windows.".to_owned(),
        ),
        (
            format!("Pr[<={end}](<> lost_in_channels > 0)"),
            "No channel is ever too small: expect no run in which this holds.".to_owned(),
        ),
    ];
    queries.map(|(formula, comment)| Query { formula, comment }).into()
}
