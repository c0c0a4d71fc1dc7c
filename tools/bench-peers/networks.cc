// The networks that acklab and ns-3 are compared on, for ns-3:
//
//     networks CONTROL QUEUE FLOWS RUN [name=value ...]
//
// A dumbbell of FLOWS senders without end, written from docs/simulator.md ("Beside ns-3"); prints one line of
// throughput, fairness, queue and drops. Values: rate (Mbit/s), seconds, packets (the buffer), rtt (ms, of all)
// or rtt and step (ms, of flow i: rtt + i step), stagger (ms), access (Mbit/s), iw (segments), min and max (RED's
// thresholds), gentle (0 or 1), probe (1: a datagram of 100 bytes each 10 ms beside the flows),
// prr (0: recovery without RFC 6937).
//
// Conventions: an ACK for every second segment or after 40 ms, SACK, timestamps, time-out
// of at least 200 ms, packets of 1500 bytes at the IP layer, no ECN. The queue stands above the bottleneck's
// device, which holds the packet in service and one more; flow control of the other devices is off, so that
// nothing queues there. The seed of run RUN differs in the starts, spread evenly over 1 ms, and in the
// queue's coins.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

const std::map<std::string, std::string> controls = {
    {"reno", "ns3::TcpLinuxReno"},
    {"cubic", "ns3::TcpCubic"},
    {"vegas", "ns3::TcpVegas"},
    {"bbr1", "ns3::TcpBbr"},
    {"westwood", "ns3::TcpWestwoodPlus"},
};

const std::map<std::string, std::string> queues = {
    {"drop-tail", "ns3::FifoQueueDisc"},
    {"red", "ns3::RedQueueDisc"},
    {"codel", "ns3::CoDelQueueDisc"},
    {"pie", "ns3::PieQueueDisc"},
    {"fq-codel", "ns3::FqCoDelQueueDisc"},
};

struct Setting
{
    double rate = 100;
    double seconds = 30;
    double packets = 800;
    double rtt = 14;
    double step = 8;
    double stagger = 50;
    double min = 40;
    double max = 120;
    double gentle = 1;
    double access = 1000;
    double iw = 10;
    double probe = 0;
    double prr = 1;
};

/// Sets what `name=value` says; false if there is no such name.
bool
Take(Setting& setting, const std::string& pair)
{
    const std::map<std::string, double*> names = {
        {"rate", &setting.rate},       {"seconds", &setting.seconds}, {"packets", &setting.packets},
        {"rtt", &setting.rtt},         {"step", &setting.step},       {"stagger", &setting.stagger},
        {"min", &setting.min},         {"max", &setting.max},         {"gentle", &setting.gentle},
        {"access", &setting.access},   {"iw", &setting.iw},           {"probe", &setting.probe},
        {"prr", &setting.prr},
    };
    const auto equals = pair.find('=');
    const auto name = names.find(pair.substr(0, equals));
    if (equals == std::string::npos || name == names.end())
    {
        return false;
    }
    *name->second = std::stod(pair.substr(equals + 1));
    return true;
}

/// Packets in the queue, weighed by time.
class Gauge
{
  public:
    void Change(uint32_t, uint32_t packets)
    {
        Pass();
        m_packets = packets;
    }

    double Mean(double seconds)
    {
        Pass();
        return m_area / seconds;
    }

  private:
    void Pass()
    {
        const double now = Simulator::Now().GetSeconds();
        m_area += m_packets * (now - m_since);
        m_since = now;
    }

    double m_area = 0;
    double m_since = 0;
    uint32_t m_packets = 0;
};

std::string
Number(double value, const char* unit)
{
    return std::to_string(static_cast<int64_t>(value)) + unit;
}

TrafficControlHelper
Discipline(const std::string& queue, const Setting& setting)
{
    TrafficControlHelper helper;
    const StringValue limit(Number(setting.packets, "p"));
    if (queue == "red")
    {
        helper.SetRootQueueDisc(queues.at(queue),
                                "MinTh", DoubleValue(setting.min),
                                "MaxTh", DoubleValue(setting.max),
                                "MaxSize", limit,
                                "QW", DoubleValue(0.002),
                                "LInterm", DoubleValue(10),
                                "Gentle", BooleanValue(setting.gentle > 0),
                                "Wait", BooleanValue(false),
                                "UseEcn", BooleanValue(false),
                                "MeanPktSize", UintegerValue(1000),
                                "LinkBandwidth", DataRateValue(DataRate(setting.rate * 1e6)));
    }
    else
    {
        helper.SetRootQueueDisc(queues.at(queue), "MaxSize", limit);
    }
    return helper;
}

PointToPointHelper
Link(double megabits, double delay_ms)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(megabits * 1e6)));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(delay_ms * 1e3)));
    return link;
}

} // namespace

int
main(int argc, char* argv[])
{
    Setting setting;
    bool usable = argc >= 5 && controls.count(argv[1]) && queues.count(argv[2]);
    for (int i = 5; usable && i < argc; ++i)
    {
        usable = Take(setting, argv[i]);
    }
    if (!usable)
    {
        std::cerr << "usage: networks CONTROL QUEUE FLOWS RUN [name=value ...]\n";
        return 2;
    }
    const std::string queue = argv[2];
    const uint32_t flows = std::stoul(argv[3]);
    RngSeedManager::SetRun(std::stoul(argv[4]));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(controls.at(argv[1])));
    const char* recovery = setting.prr > 0 ? "ns3::TcpPrrRecovery" : "ns3::TcpClassicRecovery";
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue(recovery));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(setting.iw));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", StringValue("40ms"));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", StringValue("200ms"));

    NodeContainer routers(2);
    InternetStackHelper stack;
    stack.Install(routers);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    // One packet beside the one in service, which a device needs to be asked for more.
    PointToPointHelper middle = Link(setting.rate, 1);
    middle.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
    NetDeviceContainer bottleneck = middle.Install(routers);
    QueueDiscContainer disciplines = Discipline(queue, setting).Install(bottleneck.Get(0));
    Discipline("drop-tail", setting).Install(bottleneck.Get(1));
    const Ipv4InterfaceContainer addresses_of_routers = addresses.Assign(bottleneck);
    addresses.NewNetwork();
    Gauge gauge;
    disciplines.Get(0)->TraceConnectWithoutContext("PacketsInQueue",
                                                   MakeCallback(&Gauge::Change, &gauge));

    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        const double each = (setting.rtt + i * setting.step - 2) / 4;
        Ptr<Node> ends[2];
        Ipv4Address receiver;
        for (int side = 0; side < 2; ++side)
        {
            ends[side] = CreateObject<Node>();
            stack.Install(ends[side]);
            PointToPointHelper access = Link(setting.access, each);
            access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
            access.DisableFlowControl();
            receiver = addresses.Assign(access.Install(ends[side], routers.Get(side))).GetAddress(0);
            addresses.NewNetwork();
        }
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5001));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(ends[1]).Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver, 5001));
        source.SetAttribute("SendSize", UintegerValue(1448));
        source.Install(ends[0]).Start(
            Seconds(i * setting.stagger / 1e3 + uniform->GetValue(0, 1e-3)));
    }
    if (setting.probe > 0)
    {
        UdpClientHelper probe(addresses_of_routers.GetAddress(1), 7000);
        probe.SetAttribute("Interval", StringValue("10ms"));
        probe.SetAttribute("PacketSize", UintegerValue(72));
        probe.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
        probe.Install(routers.Get(0)).Start(Seconds(uniform->GetValue(0, 1e-2)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(setting.seconds));
    Simulator::Run();

    double sum = 0;
    double squares = 0;
    for (const auto& sink : sinks)
    {
        const double bytes = sink->GetTotalRx();
        sum += bytes;
        squares += bytes * bytes;
    }
    const double wire = 1500.0 / 1448.0;
    std::cout << "mbps=" << sum * wire * 8 / setting.seconds / 1e6
              << " jain=" << (squares > 0 ? sum * sum / (flows * squares) : 0)
              << " queue=" << gauge.Mean(setting.seconds)
              << " drops=" << disciplines.Get(0)->GetStats().nTotalDroppedPackets << std::endl;
    Simulator::Destroy();
    return 0;
}
