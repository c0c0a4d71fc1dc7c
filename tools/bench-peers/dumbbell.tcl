# The three workloads of docs/simulator.md for ns-2: ns dumbbell.tcl WORKLOAD SECONDS
#
# Conventions as acklab's defaults: initial window 10, an ACK for every second segment or after
# 200 ms, SACK, limited transmit, time-out of at least 200 ms, the packet in service beside the
# queue. ns-2 has no timestamps option on the wire here; the packet is as long in all.

set workload [lindex $argv 0]
set seconds [lindex $argv 1]
switch $workload {
  bench-ref    { set n 3;  set core 1.5Mb;  set access 10Mb;   set limit 17;   set packet 1000; set control 1 }
  bench-100m10 { set n 10; set core 100Mb;  set access 1000Mb; set limit 670;  set packet 1500; set control 0 }
  bench-1g50   { set n 50; set core 1000Mb; set access 10000Mb; set limit 6670; set packet 1500; set control 0 }
  default { puts stderr "workload: bench-ref, bench-100m10 or bench-1g50"; exit 2 }
}

# Only the headers in use, as the manual recommends: it saves memory in each packet.
remove-all-packet-headers
add-packet-header IP TCP RTP Flags

set ns [new Simulator]
Agent/TCP set packetSize_ [expr $packet - 40]
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 10
Agent/TCP set windowOption_ 1
Agent/TCP set minrto_ 0.2
Agent/TCP set singledup_ 1
Agent/TCPSink/Sack1/DelAck set interval_ 200ms

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $core 5ms DropTail
$ns queue-limit $left $right $limit
$ns queue-limit $right $left $limit

# What the bottleneck drops is counted where it falls, which costs nothing for the other packets.
set dropped [new Agent/LossMonitor]
foreach {a b} [list $left $right $right $left] {
  [[$ns link $a $b] queue] drop-target $dropped
}

proc host {router delay} {
  global ns access
  set node [$ns node]
  $ns duplex-link $node $router $access $delay DropTail
  $ns queue-limit $node $router 1000000
  $ns queue-limit $router $node 1000000
  return $node
}

set senders {}
for {set i 0} {$i < $n} {incr i} {
  set from [host $left 2ms]
  set to [host $right 33ms]
  set tcp [new Agent/TCP/Sack1]
  set sink [new Agent/TCPSink/Sack1/DelAck]
  $ns attach-agent $from $tcp
  $ns attach-agent $to $sink
  $ns connect $tcp $sink
  set ftp [new Application/FTP]
  $ftp attach-agent $tcp
  $ns at 0.0 "$ftp start"
  lappend senders $tcp
}

if {$control} {
  set plant [host $left 2ms]
  set controller [host $right 33ms]
  foreach {from to} [list $plant $controller $controller $plant] {
    set udp [new Agent/UDP]
    set null [new Agent/Null]
    $ns attach-agent $from $udp
    $ns attach-agent $to $null
    $ns connect $udp $null
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 48
    $source set interval_ 14ms
    $source attach-agent $udp
    $ns at 0.0 "$source start"
  }
}

proc finish {} {
  global senders dropped packet
  set delivered 0
  foreach tcp $senders { incr delivered [expr [$tcp set ack_] + 1] }
  # Of the packets dropped, those of the flows: the others are 48 bytes.
  set drops [expr round(([$dropped set bytes_] - 48.0 * [$dropped set npkts_]) / ($packet - 48.0))]
  puts "delivered=$delivered drops=$drops"
  exit 0
}
$ns at $seconds "finish"
$ns run
