// Runs Java for a context: requests come as lines of words in hexadecimal digits, and what is beside the output goes out in frames. See worker.go.
// Code is a row of snippets as in JShell: declarations stay, and the last expression is the result. Variables of an execution are properties of the system, as with E2B.

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.*;
import java.lang.reflect.Proxy;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import jdk.jshell.*;
import jdk.jshell.SourceCodeAnalysis.Completeness;

class Worker {
  static PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, UTF_8);
  static PrintStream err = new PrintStream(new FileOutputStream(FileDescriptor.err), true, UTF_8);
  static String mark;
  static JShell shell;
  static volatile boolean interrupted;

  static class Failure extends Exception {
    final String name, value, traceback;

    Failure(String name, String value, String traceback) {
      this.name = name;
      this.value = value;
      this.traceback = traceback;
    }
  }

  public static void main(String[] args) throws Exception {
    Files.delete(Path.of(args[0])); // this program
    mark = args[1];
    System.getenv().forEach((name, value) -> System.getProperties().putIfAbsent(name, value));
    var input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    System.setIn(InputStream.nullInputStream());
    System.setOut(out);
    System.setErr(err);
    shell = JShell.builder().executionEngine("local").build();
    for (var name : List.of("io", "math", "net", "nio.file", "util", "util.concurrent", "util.function", "util.regex", "util.stream")) {
      shell.eval("import java." + name + ".*;");
    }
    onInterrupt();
    for (var line = input.readLine(); line != null; line = input.readLine()) {
      if (line.equals("?")) {
        frame(out, "ready", "null");
        continue;
      }
      var fields = line.split(" ");
      set(fields, 'b');
      interrupted = false;
      try {
        run(text(fields[0].substring(1)));
      } catch (Failure e) {
        frame(out, "error", "{\"name\":" + json(e.name) + ",\"value\":" + json(e.value) + ",\"traceback\":" + json(e.traceback) + "}");
      }
      set(fields, 'a');
      System.out.flush();
      System.err.flush();
      frame(err, "done", "0");
      frame(out, "done", "0");
    }
    System.exit(0);
  }

  // The class for signals is not one that programs are to name, which the compiler would say in the output.
  static void onInterrupt() throws Exception {
    Class<?> signal = Class.forName("sun.misc.Signal"), handler = Class.forName("sun.misc.SignalHandler");
    Object stop = Proxy.newProxyInstance(Worker.class.getClassLoader(), new Class<?>[] {handler}, (proxy, method, all) -> {
      if (!method.getName().equals("handle")) return null;
      interrupted = true;
      shell.stop();
      return null;
    });
    signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance("INT"), stop);
  }

  static void run(String code) throws Failure {
    String result = null;
    while (!code.isBlank()) {
      var info = shell.sourceCodeAnalysis().analyzeCompletion(code);
      var source = info.source();
      if (source == null || info.completeness() == Completeness.DEFINITELY_INCOMPLETE) source = code;
      var rest = source.equals(code) ? "" : info.remaining();
      if (info.completeness() == Completeness.EMPTY) break;
      var all = shell.eval(source);
      for (var e : all) if (e.causeSnippet() == null) result = taken(e);
      if (all.isEmpty()) throw new Failure("CompilationException", "the code is not complete", source);
      code = rest == null ? "" : rest;
    }
    if (result != null) frame(out, "result", "{\"text/plain\":" + json(result) + "}");
  }

  // What a snippet's value is to the caller; null: it has none.
  static String taken(SnippetEvent e) throws Failure {
    if (interrupted) throw new Failure("KeyboardInterrupt", "the execution was interrupted", "");
    if (e.status() == Snippet.Status.REJECTED) {
      var said = shell.diagnostics(e.snippet()).map(d -> d.getMessage(null)).collect(Collectors.joining("\n"));
      throw new Failure("CompilationException", said, e.snippet().source() + "\n" + said);
    }
    if (e.exception() instanceof EvalException x) throw new Failure(x.getExceptionClassName(), String.valueOf(x.getMessage()), trace(x));
    if (e.exception() instanceof UnresolvedReferenceException x) {
      var said = shell.unresolvedDependencies(x.getSnippet()).collect(Collectors.joining(", "));
      throw new Failure("UnresolvedReferenceException", "not declared: " + said, "not declared: " + said);
    }
    var kind = e.snippet().subKind();
    var expression = e.snippet().kind() == Snippet.Kind.EXPRESSION || kind == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    var nothing = e.value() == null || e.value().isEmpty() || e.value().equals("null") || kind == Snippet.SubKind.ASSIGNMENT_SUBKIND;
    return expression && !nothing ? e.value() : null;
  }

  static String trace(EvalException x) {
    var lines = new StringBuilder(x.getExceptionClassName() + ": " + x.getMessage());
    for (var at : x.getStackTrace()) lines.append("\n\tat ").append(at);
    if (x.getCause() instanceof EvalException cause) lines.append("\nCaused by: ").append(trace(cause));
    return lines.toString();
  }

  static void set(String[] fields, char kind) {
    for (var field : fields) {
      if (field.isEmpty() || field.charAt(0) != kind) continue;
      var parts = field.substring(1).split("=", -1);
      if (parts.length > 1) System.setProperty(text(parts[0]), text(parts[1]));
      else System.clearProperty(text(parts[0]));
    }
  }

  static String text(String digits) {
    return new String(HexFormat.of().parseHex(digits), UTF_8);
  }

  static void frame(PrintStream to, String kind, String value) {
    to.print("\u001e" + mark + " " + kind + " " + value + "\n");
    to.flush();
  }

  static String json(String text) {
    var out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 0x20 || Character.isSurrogate(c)) out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    return out.append('"').toString();
  }
}
