package meta

import (
	"context"
	"fmt"
	"strconv"

	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/store"
	"stoa/wire"
)

// Consensus is a ConsensusMetadataPB: a replica's Raft term, vote and last known configuration.
type Consensus struct {
	Object   string
	Term     int64
	VotedFor string
	Index    int64 // of the operation that set the configuration; -1: not set
	Peers    []Peer
}

// Peer is a RaftPeerPB.
type Peer struct {
	UUID    string
	Voter   bool
	Address string // host:port, as last known
}

// ReadConsensus reads a tablet's consensus metadata. The errors in the list are damage in spite of which it could be
// read.
func ReadConsensus(ctx context.Context, tree store.Tree, name string, o pbc.Options) (*Consensus, []error, error) {
	m := &Consensus{Object: name, Index: -1}
	notes, err := pbc.Read(ctx, tree, name, o, "consensus metadata", m.Parse)
	if err != nil {
		return nil, notes, err
	}
	return m, notes, nil
}

// Parse reads a ConsensusMetadataPB.
func (m *Consensus) Parse(c *wire.Cursor) {
	var need Required
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			s := r.Message("committed_config")
			m.parseConfig(s)
			r.Join(s)
			need.Has(1)
		case 2:
			m.Term = r.Int("current_term")
			need.Has(2)
		case 3:
			m.VotedFor = r.String("voted_for")
		default:
			r.Unknown()
		}
	}
	need.Check(c, "committed_config", 1, "current_term", 2)
}

// parseConfig reads a RaftConfigPB.
func (m *Consensus) parseConfig(c *wire.Cursor) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			m.Index = r.Int("opid_index")
		case 3:
			s := r.Message("peers[" + strconv.Itoa(len(m.Peers)) + "]")
			m.Peers = append(m.Peers, parsePeer(s))
			r.Join(s)
		default:
			r.Unknown()
		}
	}
}

func parsePeer(c *wire.Cursor) (p Peer) {
	c.Spend(128)
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			p.UUID = r.String("permanent_uuid")
		case 2:
			p.Voter = r.Int32("member_type") == 1
		case 3:
			m := r.Message("last_known_addr")
			var host string
			var port uint32
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 1:
					host = r.String("host")
				case 2:
					port = r.Uint32("port")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
			p.Address = fmt.Sprintf("%s:%d", host, port)
		default:
			r.Unknown()
		}
	}
	return p
}
