package table

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// ReadKeys are the options of Open.
var ReadKeys = []format.OptionKey{
	{Name: "segment", Values: "N,N", Help: "read these segments only (also such as do not count)"},
	{Name: "segments", Values: "N,N,… or all",
		Help: "read these segments; all: every one whose files are there, also compacted and deleted ones"},
	{Name: "bucket", Values: "N", Help: "read this bucket only"},
	{Name: "properties", Values: "FILE", Help: "a carbon.properties: carbon.storelocation, " +
		"carbon.blocklet.size, carbon.cutOffTimestamp, carbon.timegranularity"},
	{Name: "blocklet-size", Values: "ROWS",
		Help: "formats 1 and 2: carbon.blocklet.size of the writer; it is found out if it is not given"},
	{Name: "cutoff-timestamp", Values: "yyyy-MM-dd HH:mm:ss",
		Help: "carbon.cutOffTimestamp of the writer (direct dictionary timestamps)"},
	{Name: "time-granularity", Values: "SECOND, MINUTE, HOUR, DAY",
		Help: "carbon.timegranularity of the writer (direct dictionary timestamps)"},
	{Name: "timezone", Values: "ZONE", Help: "time zone of texts without one: the cut-off timestamp and " +
		"timestamps in partition names (default UTC)"},
	{Name: "positions", Values: "true, false",
		Help: "give each row the columns stoa_file and stoa_row: its data file and its number in it (default false)"},
	{Name: "deleted", Values: "true, false", Help: "show rows that are deleted, too (default false)"},
}

// ReadOptions are the options of Open, understood.
type ReadOptions struct {
	Segments    []string // nil: those that count
	allSegments bool
	Bucket      int // -1: all
	properties  string
	Blocklet    int64 // 0: not given
	cutoff      string
	granularity string
	Zone        *time.Location
	deleted     bool
	positions   bool
	location    string // carbon.storelocation
}

func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	o.Bucket, o.Zone = -1, time.UTC
	for _, k := range layout.Sorted(opts) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *ReadOptions) set(key, v string) (err error) {
	switch key {
	case "segment":
		o.Segments = append(o.Segments, strings.Split(v, ",")...)
	case "segments":
		if v == "all" {
			o.allSegments = true
			return nil
		}
		o.Segments = append(o.Segments, strings.Split(v, ",")...)
	case "bucket":
		if o.Bucket, err = strconv.Atoi(v); err != nil || o.Bucket < 0 {
			return fault.Invalidf("carbon: option bucket=%s: a number is wanted", v)
		}
	case "properties":
		o.properties = v
	case "blocklet-size":
		if o.Blocklet, err = strconv.ParseInt(v, 10, 32); err != nil || o.Blocklet <= 0 {
			return fault.Invalidf("carbon: option blocklet-size=%s: a number of rows is wanted", v)
		}
	case "cutoff-timestamp":
		o.cutoff = v
	case "time-granularity":
		o.granularity = v
	case "timezone":
		if o.Zone, err = time.LoadLocation(v); err != nil {
			return fault.Invalidf("carbon: option timezone=%s: %v", v, err)
		}
	case "positions":
		if o.positions, err = strconv.ParseBool(v); err != nil {
			return fault.Invalidf("carbon: option positions=%s: true or false is wanted", v)
		}
	case "deleted":
		if o.deleted, err = strconv.ParseBool(v); err != nil {
			return fault.Invalidf("carbon: option deleted=%s: true or false is wanted", v)
		}
	default:
		return fault.Invalidf("carbon: there is no option %q for reading", key)
	}
	return nil
}

// Complete reads the file of properties, if one is given. What the options say wins.
func (o *ReadOptions) Complete(ctx context.Context, tree store.Tree, l format.Limits) error {
	if o.properties == "" {
		return nil
	}
	obj, err := layout.OpenObject(ctx, tree, o.properties, l)
	if err != nil {
		return err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "")
	if err != nil {
		return err
	}
	p := properties(b)
	o.location = p["carbon.storelocation"]
	if o.cutoff == "" {
		o.cutoff = p["carbon.cutOffTimestamp"]
	}
	if o.granularity == "" {
		o.granularity = p["carbon.timegranularity"]
	}
	if v := p["carbon.blocklet.size"]; v != "" && o.Blocklet == 0 {
		if o.Blocklet, err = strconv.ParseInt(v, 10, 32); err != nil || o.Blocklet <= 0 {
			return fault.Invalidf("%s: carbon.blocklet.size=%s: a number of rows is wanted", o.properties, v)
		}
	}
	return nil
}

// DefaultStoreLocation is where a store lies if no carbon.properties says it: carbon.storelocation's default,
// from the working directory.
const DefaultStoreLocation = "../carbon.store"

// StoreLocation is the store that a carbon.properties names. A relative one counts from the working directory,
// as CarbonData does it; of URIs only file: is a place that can be read here.
func StoreLocation(ctx context.Context, tree store.Tree, file string) (string, error) {
	o := ReadOptions{properties: file}
	if err := o.Complete(ctx, tree, format.Limits{}); err != nil {
		return "", err
	}
	place, isFile := strings.CutPrefix(cmp.Or(o.location, DefaultStoreLocation), "file:")
	if isFile && strings.HasPrefix(place, "//") {
		place = "/" + strings.TrimLeft(place, "/")
	}
	if i := strings.Index(place, "://"); i >= 0 {
		return "", fault.Unsupportedf(fault.Span{Object: file}, "carbon.storelocation",
			"%s: only local directories are read", place)
	}
	return place, nil
}

// properties reads a Java properties file: key = value, # and ! begin a comment.
func properties(b []byte) map[string]string {
	out := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		s := strings.TrimSpace(sc.Text())
		if s == "" || s[0] == '#' || s[0] == '!' {
			continue
		}
		if i := strings.IndexAny(s, "=:"); i >= 0 {
			v := strings.TrimSpace(s[i+1:])
			out[strings.TrimSpace(s[:i])] = strings.NewReplacer(`\:`, ":", `\=`, "=", `\ `, " ").Replace(v)
		}
	}
	return out
}

// units are the steps of direct dictionary timestamps, in milliseconds.
var units = map[string]int64{"": 1000, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}

// Rule is how direct dictionary timestamps are understood. The writer took the cut-off for a time of its own zone.
func (o *ReadOptions) Rule() (page.DateRule, error) {
	u, ok := units[strings.ToUpper(o.granularity)]
	if !ok {
		return page.DateRule{}, fault.Invalidf(
			"carbon: time granularity %q: one of SECOND, MINUTE, HOUR, DAY is wanted", o.granularity)
	}
	r := page.DateRule{Unit: u}
	if o.cutoff != "" {
		when, err := time.ParseInLocation("2006-01-02 15:04:05", o.cutoff, o.Zone)
		if err != nil {
			return r, fault.Invalidf("carbon: cut-off timestamp %q: yyyy-MM-dd HH:mm:ss is wanted", o.cutoff)
		}
		r.Cutoff = when.UnixMilli()
	}
	return r, nil
}

// Wants reports whether a load is to be read.
func (o *ReadOptions) Wants(l *status.Load) bool {
	switch {
	case o.allSegments:
		return true
	case o.Segments != nil:
		return slices.Contains(o.Segments, l.Name) || slices.Contains(o.Segments, l.Id())
	}
	return l.Counts()
}
