package guest

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// Queries of the Domain Name System and answers to them; see RFC 1035, sections 4.1 and 3.2.

const (
	longestQuery   = 1232 // of UDP; see RFC 9715
	headerSize     = 12
	typeA          = 1
	classInternet  = 1
	rcodeNameError = 3
	answerTTL      = 30 // seconds
)

var errQuery = errors.New("not a query for one name")

type query struct {
	id       uint16
	flags    uint16
	name     string // in lower case; "" when it has what no host's name has
	kind     uint16
	class    uint16
	question []byte // as it came
}

// parseQuery reads a message with one question.
func parseQuery(b []byte) (q query, err error) {
	if len(b) < headerSize+5 || b[2]&0x80 != 0 || b[2]&0x78 != 0 || binary.BigEndian.Uint16(b[4:]) != 1 {
		return q, errQuery
	}
	q.id, q.flags = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	var labels []string
	at, length, plain := headerSize, 0, true
	for {
		if at >= len(b) {
			return q, errQuery
		}
		n := int(b[at])
		at++
		if n == 0 {
			break
		}
		if length += n + 1; n > 63 || length > 254 || at+n > len(b) {
			return q, errQuery
		}
		label := strings.ToLower(string(b[at : at+n]))
		plain = plain && isLabel(label)
		labels = append(labels, label)
		at += n
	}
	if at+4 > len(b) {
		return q, errQuery
	}
	if plain {
		q.name = strings.Join(labels, ".")
	}
	q.kind, q.class = binary.BigEndian.Uint16(b[at:]), binary.BigEndian.Uint16(b[at+2:])
	q.question = b[headerSize : at+4]
	return q, nil
}

// isLabel says whether a label has nothing but letters, digits, hyphens and underscores.
func isLabel(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// answer makes the answer to a query, with the address if that is valid.
func (q query) answer(rcode uint16, a netip.Addr) []byte {
	const response, recursionAvailable, recursionDesired = 1 << 15, 1 << 7, 1 << 8
	be := binary.BigEndian
	b := be.AppendUint16(nil, q.id)
	b = be.AppendUint16(b, response|recursionAvailable|q.flags&recursionDesired|rcode)
	count := uint16(0)
	if a.IsValid() {
		count = 1
	}
	for _, n := range []uint16{1, count, 0, 0} {
		b = be.AppendUint16(b, n)
	}
	b = append(b, q.question...)
	if count == 0 {
		return b
	}
	b = be.AppendUint16(b, 0xc000|headerSize) // the name of the question
	b = be.AppendUint16(b, typeA)
	b = be.AppendUint16(b, classInternet)
	b = be.AppendUint32(b, answerTTL)
	b = be.AppendUint16(b, 4)
	address := a.As4()
	return append(b, address[:]...)
}
