package wire

// The operations on what listens in a sandbox.
const (
	// OpPortList: the guest answers with a Response whose body is a JSON array of PortInfo: the TCP ports at which programs of the sandbox listen.
	OpPortList = "port.list"
	// OpPortDial: the guest connects to Request.Port of the sandbox's own loopback interface and answers with a Response; then the bytes of the connection go both
	// ways on the channel, and nothing else. An end of writing goes over alone.
	OpPortDial = "port.dial"
)

// DialLimit is how many connections OpPortDial serves at a time.
const DialLimit = 1024

// PortInfo is a TCP port at which a program listens.
type PortInfo struct {
	Port    int    `json:"port"`
	Address string `json:"address"` // that it listens at: "0.0.0.0", "127.0.0.1", "::"
}

// FaultRefused says that nothing listens at a port.
const FaultRefused = "refused"
