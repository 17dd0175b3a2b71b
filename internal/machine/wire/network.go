package wire

// The operation on the world outside a sandbox.
const (
	// OpNetwork: the request's body is what programs of the sandbox are to trust beside the authorities of the machine, PEM, or nothing. The guest answers with a Response, and from then until the channel ends hands on what programs of the sandbox want of the network: for each name that
	// they look up and each TCP connection that they make it opens a channel and sends an Outbound. The host answers each with a Response. After the answer to
	// OutboundConnect, if that has no fault, the bytes of the connection go both ways, and nothing else; an end of writing goes over alone. One connection between host and guest
	// has one OpNetwork at a time.
	OpNetwork = "network"
)

// SystemCertificates are the authorities that the machine trusts, on the host and in the sandbox. CertificatesPath is a list with these and with what OpNetwork has brought.
const (
	SystemCertificates = "/etc/ssl/certs/ca-certificates.crt"
	CertificatesPath   = "/run/certificates.pem"
)

// CertificatesLimit bounds the body of OpNetwork.
const CertificatesLimit = 64 << 10

// The numbers of names and connections that OpNetwork serves at a time.
const (
	LookUpLimit  = 32
	ConnectLimit = 1024
	NetworkLimit = LookUpLimit + ConnectLimit
)

// Outbound is the header of the message that begins a channel of OpNetwork's.
type Outbound struct {
	Kind string `json:"kind"`
	Host string `json:"host"` // a name in lower case without a dot at its end, or for OutboundConnect an IPv4 address where no name was looked up for it
	Port int    `json:"port,omitempty"`
}

// The kinds of Outbound.
const (
	OutboundLookUp  = "look_up" // is there such a name, and may it be reached
	OutboundConnect = "connect"
)

// FaultUnreachable says that a name or an address cannot be reached, or may not be.
const FaultUnreachable = "unreachable"
