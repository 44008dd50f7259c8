import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.minikdc.MiniKdc;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.ssl.KeyStoreTestUtil;

/**
 * Runs Hadoop's MiniDFSCluster below a directory. usage: Cluster DIR simple|ha|kerberos
 * It writes DIR/conf, the configuration files of a client, and then obeys lines of standard input, each with an answer;
 * their end ends the cluster.
 */
public class Cluster {
  static FileSystem other;
  static OutputStream held;
  static final String USER = System.getProperty("user.name");

  public static void main(String[] args) throws Exception {
    File dir = new File(args[0]);
    String kind = args[1];
    File confDir = new File(dir, "conf");
    confDir.mkdirs();
    Configuration conf = new Configuration();
    conf.set("hdfs.minidfs.basedir", new File(dir, "dfs").getPath());
    conf.setInt("dfs.blocksize", 1 << 20);
    conf.setInt("dfs.replication", 2);
    conf.setInt("dfs.namenode.fs-limits.min-block-size", 1 << 12);
    conf.setInt("ipc.client.connect.max.retries", 1);
    Configuration client = new Configuration(false);
    client.setInt("dfs.replication", 2);
    MiniKdc kdc = null;
    MiniDFSCluster.Builder b = new MiniDFSCluster.Builder(conf).numDataNodes(2);
    if (kind.equals("ha")) {
      conf.setInt("dfs.ha.tail-edits.period", 1);
      b.nnTopology(MiniDFSNNTopology.simpleHATopology());
    }
    if (kind.equals("kerberos")) {
      kdc = secure(dir, conf, client);
      b.checkDataNodeHostConfig(true);
    }
    MiniDFSCluster cluster = b.build();
    if (kind.equals("ha")) {
      cluster.transitionToActive(0);
      client.set("fs.defaultFS", "hdfs://dead-cluster");
      client.set("dfs.nameservices", "dead-cluster");
      client.set("dfs.ha.namenodes.dead-cluster", "nn1,nn2");
      for (int i = 0; i < 2; i++) {
        client.set("dfs.namenode.rpc-address.dead-cluster.nn" + (i + 1), address(cluster, i));
      }
      client.set("dfs.client.failover.proxy.provider.dead-cluster",
          "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
    } else {
      client.set("fs.defaultFS", "hdfs://" + address(cluster, 0));
    }
    cluster.waitActive();
    write(client, confDir);
    FileSystem fs = cluster.getFileSystem(0);
    fs.setPermission(new Path("/"), new FsPermission((short) 0777));
    System.out.println("ready " + address(cluster, 0));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null;) {
      try {
        obey(line.split(" "), cluster, conf, client);
        System.out.println("ok");
      } catch (Throwable e) {
        System.out.println("failed: " + e.toString().replace('\n', ' '));
      }
    }
    cluster.shutdown();
    if (kdc != null) {
      kdc.stop();
    }
    System.exit(0);
  }

  static String address(MiniDFSCluster c, int i) {
    InetSocketAddress a = c.getNameNode(i).getNameNodeAddress();
    return "localhost:" + a.getPort();
  }

  static void obey(String[] w, MiniDFSCluster c, Configuration conf, Configuration client) throws Exception {
    switch (w[0]) {
      case "failover":
        c.transitionToStandby(0);
        c.transitionToActive(1);
        break;
      case "stop-datanode":
        c.stopDataNode(0);
        break;
      case "put": // LOCAL REMOTE
        c.getFileSystem(active(c)).mkdirs(new Path(w[2]).getParent());
        c.getFileSystem(active(c)).copyFromLocalFile(new Path("file://" + w[1]), new Path(w[2]));
        break;
      case "get": // REMOTE LOCAL
        c.getFileSystem(active(c)).copyToLocalFile(false, new Path(w[1]), new Path("file://" + w[2]), true);
        break;
      case "append": // PATH: opens it for appending until "close", as a user of its own
        other = FileSystem.newInstance(client);
        held = other.append(new Path(w[1]));
        break;
      case "close":
        held.close();
        other.close();
        break;
      case "remove":
        c.getFileSystem(active(c)).delete(new Path(w[1]), true);
        break;
      case "chmod": // MODE PATH
        c.getFileSystem(active(c)).setPermission(new Path(w[2]), new FsPermission(w[1]));
        break;
      case "safemode":
        c.getNameNodeRpc(active(c)).setSafeMode(w[1].equals("on")
            ? org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction.SAFEMODE_ENTER
            : org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction.SAFEMODE_LEAVE, false);
        break;
      case "corrupt": // PATH: damages all replicas of its first block
        org.apache.hadoop.hdfs.protocol.ExtendedBlock block =
            org.apache.hadoop.hdfs.DFSTestUtil.getFirstBlock(c.getFileSystem(active(c)), new Path(w[1]));
        c.corruptBlockOnDataNodes(block);
        break;
      default:
        throw new IllegalArgumentException(w[0]);
    }
  }

  static int active(MiniDFSCluster c) {
    return c.getNumNameNodes() > 1 && !c.getNameNode(0).isActiveState() ? 1 : 0;
  }

  static void write(Configuration c, File dir) throws Exception {
    try (OutputStream out = new FileOutputStream(new File(dir, "core-site.xml"))) {
      c.writeXml(out);
    }
  }

  /** Configures Kerberos: a KDC, keytabs, and SASL between clients and datanodes. */
  static MiniKdc secure(File dir, Configuration conf, Configuration client) throws Exception {
    File kdcDir = new File(dir, "kdc");
    kdcDir.mkdirs();
    Properties p = MiniKdc.createConf();
    MiniKdc kdc = new MiniKdc(p, kdcDir);
    kdc.start();
    File service = new File(dir, "service.keytab");
    File user = new File(dir, "user.keytab");
    kdc.createPrincipal(service, USER + "/localhost", "HTTP/localhost");
    kdc.createPrincipal(user, "reader");
    Files.copy(kdc.getKrb5conf().toPath(), new File(dir, "krb5.conf").toPath());
    String principal = USER + "/localhost@" + kdc.getRealm();
    for (Configuration c : new Configuration[] {conf, client}) {
      c.set("hadoop.security.authentication", "kerberos");
      c.set("dfs.namenode.kerberos.principal", principal);
      c.set("dfs.datanode.kerberos.principal", principal);
      c.set("dfs.data.transfer.protection", System.getProperty("protection", "authentication"));
    }
    conf.set("hadoop.rpc.protection", "authentication");
    conf.set("dfs.namenode.keytab.file", service.getPath());
    conf.set("dfs.datanode.keytab.file", service.getPath());
    conf.set("dfs.web.authentication.kerberos.principal", "HTTP/localhost@" + kdc.getRealm());
    conf.setBoolean("dfs.block.access.token.enable", true);
    conf.set("dfs.http.policy", "HTTPS_ONLY");
    conf.set("dfs.namenode.https-address", "localhost:0");
    conf.set("dfs.datanode.https.address", "localhost:0");
    conf.setBoolean("ignore.secure.ports.for.testing", true);
    File stores = new File(dir, "stores");
    stores.mkdirs();
    KeyStoreTestUtil.setupSSLConfig(stores.getPath(), KeyStoreTestUtil.getClasspathDir(Cluster.class), conf, false);
    UserGroupInformation.setConfiguration(conf);
    UserGroupInformation.loginUserFromKeytab(principal, service.getPath());
    return kdc;
  }
}
