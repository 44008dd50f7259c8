// Package hdfs has Hadoop judge what stoa reads and writes at hdfs:// addresses: its MiniDFSCluster, alone, with two
// namenodes of which one is active, and with Kerberos.
package hdfs
