package format

import "stoa/store"

// MendOptions are how to mend a place.
type MendOptions struct {
	OpenOptions
	Sink   store.Sink // a directory, to which each mended server is written under its name
	Server string     // the only one to be written, intact or not; "": those that are damaged
}

// MendedServer is a server whose directories were written anew.
type MendedServer struct {
	Server  string       `json:"server"`
	Dir     string       `json:"directory"` // in the sink; "": nothing was written
	Parts   []MendedPart `json:"tablets"`
	Unknown []string     `json:"not_mended,omitempty"` // what could not be written, with the reason
}

// MendedPart is a part of a server, such as a tablet.
type MendedPart struct {
	Table  string `json:"table"`
	ID     string `json:"tablet"`
	From   string `json:"from"`  // the place from which it comes
	Other  bool   `json:"other"` // that is another server's
	Blocks int    `json:"blocks"`
	Twins  int    `json:"blocks_of_twins"` // of these blocks, those whose bytes come from a copy
	Why    string `json:"why,omitempty"`   // why it comes from another server
}

// Mended reports whether the part is not just as its server had it.
func (p *MendedPart) Mended() bool { return p.Other || p.Twins > 0 }
