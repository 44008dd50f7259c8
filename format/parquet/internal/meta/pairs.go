package meta

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// PairChanges are what options change about key/value metadata.
type PairChanges struct {
	set  []KeyPair
	drop []string
}

// ParsePairs takes options about key/value metadata apart: those that are set, as KEY=VALUE, and those that are
// dropped.
func ParsePairs(set, drop []string) (c PairChanges, err error) {
	for _, item := range set {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return c, fault.Invalidf("metadata=%s: it is not KEY=VALUE", item)
		}
		if slices.ContainsFunc(c.set, func(p KeyPair) bool { return p.Key == key }) {
			return c, fault.Invalidf("metadata=%s: key %s is there twice", item, key)
		}
		c.set = append(c.set, KeyPair{key, &value})
	}
	c.drop = drop
	for _, key := range c.keys() {
		if key == StoredSchema || key == SealKey || key == PartKey {
			return c, fault.Invalidf("key %s is not the user's: it says what the file is made of", key)
		}
	}
	for _, key := range c.drop {
		if slices.ContainsFunc(c.set, func(p KeyPair) bool { return p.Key == key }) {
			return c, fault.Invalidf("metadata and drop-metadata both name key %s", key)
		}
	}
	return c, nil
}

func (c *PairChanges) keys() (out []string) {
	for _, p := range c.set {
		out = append(out, p.Key)
	}
	return append(out, c.drop...)
}

// Apply gives key/value metadata as a file of some columns has them: changed as the options say, and what describes
// columns without those that are not there.
func (c *PairChanges) Apply(pairs []KeyPair, columns []arrow.Field) (out []KeyPair, err error) {
	for _, key := range c.drop {
		if !slices.ContainsFunc(pairs, func(p KeyPair) bool { return p.Key == key }) {
			return nil, fault.Invalidf("drop-metadata=%s: there is no such key", key)
		}
	}
	for _, p := range pairs {
		if slices.Contains(c.drop, p.Key) {
			continue
		}
		if p.Value != nil {
			value, ok := OfColumns(p.Key, *p.Value, columns)
			if !ok {
				continue
			}
			p.Value = &value
		}
		out = append(out, p)
	}
	return c.Replace(out), nil
}

// Replace gives key/value metadata with those that are set.
func (c *PairChanges) Replace(pairs []KeyPair) (out []KeyPair) {
	left := slices.Clone(c.set)
	for _, p := range pairs {
		if i := slices.IndexFunc(left, func(s KeyPair) bool { return s.Key == p.Key }); i >= 0 {
			p = left[i]
			left = slices.Delete(left, i, i+1)
		}
		out = append(out, p)
	}
	return append(out, left...)
}
