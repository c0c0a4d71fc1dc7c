// The three workloads of docs/simulator.md for ns-3: dumbbell WORKLOAD SECONDS
//
// Conventions as acklab's defaults: initial window 10, an ACK for every second segment or after
// 200 ms, SACK, timestamps, time-out of at least 200 ms, the packet in service beside the queue. Flow
// control between device and host is off, so that no traffic-control layer queues above the
// devices. Point-to-point devices add two bytes of PPP.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

struct Workload
{
    const char* name;
    uint32_t flows;
    const char* core;
    const char* access;
    const char* queue;
    uint32_t packet;
    bool control;
};

const Workload workloads[] = {
    {"bench-ref", 3, "1500kbps", "10Mbps", "17p", 1000, true},
    {"bench-100m10", 10, "100Mbps", "1Gbps", "670p", 1500, false},
    {"bench-1g50", 50, "1Gbps", "10Gbps", "6670p", 1500, false},
};

uint64_t drops = 0;

void
CountDrop(Ptr<const Packet> packet)
{
    // Packets of the flows; the control flow's have 48 bytes.
    drops += packet->GetSize() > 100;
}

/// Hosts behind access links, and the addresses they were given.
class Access
{
  public:
    Access(const char* rate, const char* delay)
    {
        m_link.SetDeviceAttribute("DataRate", StringValue(rate));
        m_link.SetChannelAttribute("Delay", StringValue(delay));
        m_link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
        m_link.DisableFlowControl();
    }

    /// A new host at `router`; its address is the first of the pair.
    std::pair<Ptr<Node>, Ipv4Address> Host(Ptr<Node> router, Ipv4AddressHelper& addresses)
    {
        Ptr<Node> host = CreateObject<Node>();
        InternetStackHelper().Install(host);
        NetDeviceContainer devices = m_link.Install(host, router);
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        return {host, interfaces.GetAddress(0)};
    }

  private:
    PointToPointHelper m_link;
};

void
Control(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, double seconds)
{
    UdpClientHelper client(address, 7000);
    client.SetAttribute("Interval", StringValue("14ms"));
    client.SetAttribute("PacketSize", UintegerValue(20)); // 48 with both headers
    client.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    ApplicationContainer apps = client.Install(from);
    apps.Add(PacketSinkHelper("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 7000))
                 .Install(to));
    apps.Start(Seconds(0));
    apps.Stop(Seconds(seconds));
}

} // namespace

int
main(int argc, char* argv[])
{
    const Workload* chosen = nullptr;
    for (const Workload& workload : workloads)
    {
        if (argc == 3 && workload.name == std::string(argv[1]))
        {
            chosen = &workload;
        }
    }
    if (!chosen)
    {
        std::cerr << "usage: dumbbell bench-ref|bench-100m10|bench-1g50 SECONDS\n";
        return 2;
    }
    const double seconds = std::atof(argv[2]);
    // 20 bytes of IPv4, 20 of TCP, 12 of timestamps.
    const uint32_t payload = chosen->packet - 52;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(payload));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", StringValue("200ms"));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(3 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", StringValue("200ms"));

    NodeContainer routers(2);
    InternetStackHelper().Install(routers);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    PointToPointHelper core;
    core.SetDeviceAttribute("DataRate", StringValue(chosen->core));
    core.SetChannelAttribute("Delay", StringValue("5ms"));
    core.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(chosen->queue));
    core.DisableFlowControl();
    NetDeviceContainer bottleneck = core.Install(routers);
    addresses.Assign(bottleneck);
    addresses.NewNetwork();
    for (uint32_t i = 0; i < bottleneck.GetN(); ++i)
    {
        auto device = DynamicCast<PointToPointNetDevice>(bottleneck.Get(i));
        device->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&CountDrop));
    }

    Access left(chosen->access, "2ms");
    Access right(chosen->access, "33ms");
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < chosen->flows; ++i)
    {
        auto sender = left.Host(routers.Get(0), addresses);
        auto receiver = right.Host(routers.Get(1), addresses);
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5001));
        ApplicationContainer apps = sink.Install(receiver.first);
        sinks.push_back(DynamicCast<PacketSink>(apps.Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver.second, 5001));
        source.SetAttribute("SendSize", UintegerValue(payload));
        apps.Add(source.Install(sender.first));
        apps.Start(Seconds(0));
        apps.Stop(Seconds(seconds));
    }
    if (chosen->control)
    {
        auto plant = left.Host(routers.Get(0), addresses);
        auto controller = right.Host(routers.Get(1), addresses);
        Control(plant.first, controller.first, controller.second, seconds);
        Control(controller.first, plant.first, plant.second, seconds);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t bytes = 0;
    for (const auto& sink : sinks)
    {
        bytes += sink->GetTotalRx();
    }
    std::cout << "delivered=" << bytes / payload << " drops=" << drops
              << " events=" << Simulator::GetEventCount() << std::endl;
    Simulator::Destroy();
    return 0;
}
