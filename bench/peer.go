package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// offer is something that a peer can measure, and the checksums of what it reads or has written.
type offer struct {
	Looked int // keys that are looked up
	Sums   map[string]sum
}

// peer is a program that measures what it offers, a run at a time: see serve.
type peer struct {
	name   string
	offers map[string]offer
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *json.Decoder
	close  io.Closer
}

// startPeer starts a peer and reads what it offers.
func startPeer(name string, env []string, command string, args ...string) (*peer, error) {
	p := &peer{name: name, cmd: exec.Command(command, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out, p.close = json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out)), in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.out.Decode(&p.offers); err != nil {
		p.end()
		return nil, fmt.Errorf("%s offers nothing: %w", name, err)
	}
	return p, nil
}

// end has the peer end, as its input does.
func (p *peer) end() {
	p.close.Close()
	p.cmd.Wait()
}

// measure has the peer measure something once.
func (p *peer) measure(what string) (s float64, err error) {
	if err := p.in.Encode(what); err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.out.Decode(&s); err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	return s, nil
}
