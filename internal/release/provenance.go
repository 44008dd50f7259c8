package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// The parts of in-toto's statement, version 1, and of SLSA's provenance, version 1, that a release uses.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     built      `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	built struct {
		Definition definition `json:"buildDefinition"`
		Run        details    `json:"runDetails"`
	}
	definition struct {
		Type     string            `json:"buildType"`
		External map[string]string `json:"externalParameters"`
		Resolved []resource        `json:"resolvedDependencies"`
	}
	details struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
		Metadata struct {
			Started string `json:"startedOn"`
		} `json:"metadata"`
	}
)

// provenance writes a statement for each file: the commit and the modules that a command was built from, the command
// that a package was built from. The statements are not signed; whoever publishes a release signs them.
func (r *release) provenance() error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, a := range r.files {
		s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
			Subject: []resource{a.resource()}}
		s.Predicate.Definition = definition{Type: "https://example.invalid/stoa/internal/release/v1",
			External: map[string]string{"version": r.version, "command": "make dist"}}
		for _, from := range a.from {
			s.Predicate.Definition.Resolved = append(s.Predicate.Definition.Resolved, r.resolved(from)...)
		}
		s.Predicate.Run.Builder.ID = "https://example.invalid/stoa/internal/release"
		s.Predicate.Run.Metadata.Started = r.when.Format(time.RFC3339) // the commit's: a build has no time of its own
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return r.write("stoa-"+r.version+".intoto.jsonl", out.Bytes(), source)
}

func (a artifact) resource() resource {
	return resource{Name: a.name, Digest: map[string]string{"sha256": hex.EncodeToString(a.sum[:])}}
}

func (r *release) resolved(from string) []resource {
	if from != source {
		for _, a := range r.files {
			if a.name == from {
				return []resource{a.resource()}
			}
		}
		panic(fmt.Sprintf("%s was not made before", from))
	}
	tree := resource{Name: "stoa", URI: "git+https://example.invalid/stoa"}
	if r.commit != "" {
		tree.Digest = map[string]string{"gitCommit": r.commit}
	}
	all := []resource{tree, {Name: "go", URI: "pkg:generic/go@" + r.goes}}
	for _, m := range r.modules {
		d := resource{Name: m.Name, URI: m.PURL}
		for _, h := range m.Hashes {
			d.Digest = map[string]string{"dirHash": h.Content} // Go's h1, over the names and sums of the module's files
		}
		all = append(all, d)
	}
	return all
}
