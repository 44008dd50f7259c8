// Package cluster is the directories of one server or several, taken together: the tables that are in them, the
// replicas of each tablet, what a master's catalogue says, what is missing, and what no table claims.
package cluster
