package layout

import (
	"bufio"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
)

// spatialTable returns a table with a geohash index, whose properties have the names and values of CarbonData 2.3.0.
func spatialTable(latitude, grid, ratio string) *TableSchema {
	t := &TableSchema{Properties: map[string]string{"spatial_index": "mygeohash"}}
	for k, v := range map[string]string{"type": "geohash", "class": "org.apache.carbondata.geo.GeoHashIndex",
		"sourcecolumns": "longitude,latitude", "originlatitude": latitude, "gridsize": grid, "conversionratio": ratio} {
		t.Properties["spatial_index.mygeohash."+k] = v
	}
	for i, n := range []string{"mygeohash", "longitude", "latitude", "name"} {
		t.Columns = append(t.Columns, ColumnSchema{Name: n, Type: TypeLong, Ordinal: int32(i)})
	}
	return t
}

// TestSpatial: the index of each point is the one that CarbonData 2.3.0 computed, for seven grids and points in all
// directions, on the edges of the world and beyond.
func TestSpatial(t *testing.T) {
	f, err := os.Open("testdata/geohash.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		v := strings.Split(lines.Text(), ",")
		if len(v) != 6 || v[5] == "" || strings.HasPrefix(v[0], "#") {
			continue
		}
		x := spatialTable(v[0], v[1], v[2]).Spatial()
		if x == nil {
			t.Fatalf("no index: %v", v)
		}
		lon, err1 := strconv.ParseInt(v[3], 10, 64)
		lat, err2 := strconv.ParseInt(v[4], 10, 64)
		if got := x.ID(lon, lat); err1 != nil || err2 != nil || strconv.FormatInt(got, 10) != v[5] {
			t.Errorf("%v: got %d", v, got)
		}
		rows++
	}
	if rows < 400 {
		t.Errorf("only %d rows were compared", rows)
	}
}

// TestSpatialUnknown: an index whose computation is not known for sure is none that stoa maintains.
func TestSpatialUnknown(t *testing.T) {
	for _, change := range []map[string]string{{"type": "other"}, {"class": "org.example.Own"}, {"gridsize": "0"},
		{"gridsize": ""}, {"conversionratio": "-1"}, {"originlatitude": "north"}, {"sourcecolumns": "longitude"},
		{"sourcecolumns": "longitude,height"}, {"minlongitude": "115.8"}} {
		s := spatialTable("39.8", "50", "1000000")
		for k, v := range change {
			s.Properties["spatial_index.mygeohash."+k] = v
		}
		if s.Spatial() != nil {
			t.Errorf("%v: maintained", change)
		}
	}
	s := spatialTable("39.8", "50", "1000000")
	old := maps.Clone(s.Properties)
	s.Properties = map[string]string{"index_handler": "mygeohash"}
	if s.Spatial() != nil || len(s.Dependents()) != 1 {
		t.Errorf("index_handler: got %v", s.Dependents())
	}
	s.Properties = old
	if s.Columns[1].Type = TypeInt; s.Spatial() != nil {
		t.Error("a source of integers: maintained")
	}
}
