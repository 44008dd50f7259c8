package kudufs

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/meta"
)

var writeKeys = []format.OptionKey{
	{Name: "table", Values: "NAME", Help: "the table's name (default: that of the Kudu table)"},
	{Name: "table-id", Values: "ID", Help: "the table's id, 32 hexadecimal digits (default: that of the Kudu " +
		"table, else made of the name)"},
	{Name: "key", Values: "COLUMN,…", Help: "the primary key (default: that of the Kudu table)"},
	{Name: "buckets", Values: "N", Help: "hash partitions by the primary key (default: as the Kudu table was divided, " +
		"else one tablet)"},
	{Name: "server", Values: "UUID", Help: "the tablet server, 32 hexadecimal digits (default: made of the table's id)"},
	{Name: "peers", Values: "UUID@HOST:PORT,…", Help: "the servers that have replicas, the one that is written among " +
		"them (default: that one alone, at 127.0.0.1:7050)"},
	{Name: "time", Values: "MS", Help: "when the table was made, in milliseconds since 1970 (default: now)"},
	{Name: "rowset-size", Values: "BYTES", Help: "how much of a tablet is gathered into one rowset (default 64MiB)"},
}

const defaultRowSet = 64 << 20

// options are those of Create, understood.
type options struct {
	table, id string
	key       []string
	buckets   int32
	server    string
	peers     []meta.Peer
	time      time.Time
	rowSet    int64
}

func parseOptions(opts map[string]string) (o options, err error) {
	o = options{time: time.Now(), rowSet: defaultRowSet}
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		v := opts[k]
		if err := o.set(k, v); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *options) set(k, v string) (err error) {
	n, numErr := strconv.ParseInt(v, 10, 64)
	switch k {
	case "table":
		o.table = v
	case "table-id":
		o.id, err = uuidOf(k, v)
	case "key":
		o.key = strings.Split(v, ",")
	case "buckets":
		if o.buckets = int32(n); numErr != nil || n < 2 || n > 10_000 {
			return fault.Invalidf("buckets=%s: a number from 2 to 10000 is wanted", v)
		}
	case "server":
		o.server, err = uuidOf(k, v)
	case "peers":
		o.peers, err = peersOf(v)
	case "time":
		if o.time = time.UnixMilli(n); numErr != nil || n < 1 {
			return fault.Invalidf("time=%s: milliseconds since 1970 are wanted", v)
		}
	case "rowset-size":
		if size, ok := format.ParseSize(v); !ok || size < 1 {
			return fault.Invalidf("rowset-size=%s: a number of bytes is wanted", v)
		} else {
			o.rowSet = size
		}
	default:
		return fault.Invalidf("there is no option %s", k)
	}
	return err
}

// uuidOf reads an id as Kudu writes it.
func uuidOf(key, v string) (string, error) {
	if b, err := hex.DecodeString(v); err != nil || len(b) != 16 {
		return "", fault.Invalidf("%s=%s: 32 hexadecimal digits are wanted", key, v)
	}
	return strings.ToLower(v), nil
}

// peersOf reads UUID@HOST:PORT,….
func peersOf(v string) (out []meta.Peer, err error) {
	for one := range strings.SplitSeq(v, ",") {
		id, address, _ := strings.Cut(one, "@")
		if id, err = uuidOf("peers", id); err != nil {
			return nil, err
		}
		if _, port, err := net.SplitHostPort(address); err != nil || !isPort(port) {
			return nil, fault.Invalidf("peers=%s: UUID@HOST:PORT is wanted", one)
		}
		out = append(out, meta.Peer{UUID: id, Voter: true, Address: address})
	}
	return out, nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// madeID makes an id of words, always the same.
func madeID(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:16])
}
