// Package cluster takes the directories of one or several servers together: the tables that are in them, the replicas
// of each tablet, what a master's catalogue says, what is missing, and what no table claims. Replicas are no copies
// byte for byte: each server flushes and compacts for itself, so they are compared by rows and operations.
package cluster
