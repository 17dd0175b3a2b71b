# Runs R for a context: requests come as lines of words in hexadecimal digits, and what is beside the output goes out in frames. See worker.go.
local({
  mark <- utils::tail(commandArgs(TRUE), 1)
  most <- 2e6 # bytes of a picture
  if (!l10n_info()[["UTF-8"]]) Sys.setlocale("LC_CTYPE", "C.UTF-8")

  text <- function(digits) {
    v <- utf8ToInt(digits)
    if (length(v) < 2 || anyNA(v)) return("")
    v <- ifelse(v > 57L, v - 87L, v - 48L)
    out <- rawToChar(as.raw(v[c(TRUE, FALSE)] * 16L + v[c(FALSE, TRUE)]))
    Encoding(out) <- "UTF-8"
    out
  }

  json <- function(x) {
    x <- gsub("\"", "\\\"", gsub("\\", "\\\\", enc2utf8(x), fixed = TRUE), fixed = TRUE)
    for (c in 1:31) x <- gsub(intToUtf8(c), sprintf("\\u%04x", c), x, fixed = TRUE)
    paste0("\"", x, "\"")
  }

  base64 <- function(bytes) {
    digits <- c(LETTERS, letters, 0:9, "+", "/")
    missing <- -length(bytes) %% 3
    m <- matrix(as.integer(c(bytes, raw(missing))), 3)
    out <- digits[rbind(m[1, ] %/% 4L, m[1, ] %% 4L * 16L + m[2, ] %/% 16L, m[2, ] %% 16L * 4L + m[3, ] %/% 64L, m[3, ] %% 64L) + 1L]
    if (missing) out[seq(length(out) - missing + 1, length(out))] <- "="
    paste(out, collapse = "")
  }

  frame <- function(kind, value = "null", to = stdout()) cat("\x1e", mark, " ", kind, " ", value, "\n", file = to, sep = "")

  # Devices that were opened for plots, and their folders.
  devices <- integer()
  folders <- character()
  options(warn = 1, keep.source = TRUE, device = function(...) {
    folder <- tempfile("plots")
    dir.create(folder)
    grDevices::png(file.path(folder, "%04d.png"), width = 840, height = 840, res = 120, type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
    devices <<- c(devices, grDevices::dev.cur())
    folders <<- c(folders, folder)
  })
  plots <- function() {
    for (d in intersect(devices, grDevices::dev.list())) grDevices::dev.off(d)
    for (one in list.files(folders, full.names = TRUE)) {
      size <- file.size(one)
      if (size > most) message("a plot of ", size, " bytes is left out; one may have ", most)
      else frame("display", paste0("{\"image/png\":\"", base64(readBin(one, "raw", size)), "\"}"))
    }
    unlink(folders, recursive = TRUE)
    devices <<- integer()
    folders <<- character()
  }

  show <- function(value, last) {
    print_it <- function() if (isS4(value)) methods::show(value) else print(value)
    if (sink.number() > 0 || !last) return(print_it()) # as in R's own prompt
    said <- paste(utils::capture.output(print_it()), collapse = "\n")
    if (nzchar(said)) frame("result", paste0("{\"text/plain\":", json(said), "}"))
  }

  failure <- function(e, calls, name = class(e)[1]) {
    plots()
    where <- conditionCall(e)
    head <- paste0("Error", if (!is.null(where)) paste0(" in ", deparse(where, nlines = 1)[1]), ": ", conditionMessage(e))
    calls <- if (length(calls)) paste0(seq_along(calls), ". ", calls)
    while (sink.number() > 0) sink()
    frame("error", paste0("{\"name\":", json(name), ",\"value\":", json(conditionMessage(e)), ",\"traceback\":", json(paste(c(head, calls), collapse = "\n")), "}"))
  }

  run <- function(code) {
    calls <- character()
    keep <- function(e) {
      all <- sys.calls()
      from <- which(vapply(all, function(c) identical(c, quote(eval(one, globalenv()))), NA))
      all <- if (length(from)) all[seq_along(all) > max(from) & seq_along(all) < length(all) - 1] # the two last are those of the handling
      calls <<- vapply(all, function(c) deparse(c, nlines = 1)[1], "")
    }
    tryCatch(withCallingHandlers({
      all <- parse(text = code)
      for (at in seq_along(all)) {
        one <- all[[at]]
        got <- withVisible(eval(one, globalenv()))
        if (got$visible) show(got$value, at == length(all))
      }
      plots()
    }, error = keep),
    error = function(e) failure(e, calls),
    interrupt = function(e) failure(simpleCondition("the execution was interrupted"), character(), "KeyboardInterrupt"))
  }

  set <- function(fields, kind) {
    for (one in strsplit(substring(fields[startsWith(fields, kind)], 2), "=", fixed = TRUE)) {
      if (length(one) > 1) do.call(Sys.setenv, stats::setNames(list(text(one[2])), text(one[1])))
      else Sys.unsetenv(text(one[1]))
    }
  }

  input <- file("stdin", "r", raw = TRUE)
  repeat {
    line <- tryCatch(readLines(input, 1), interrupt = function(e) NULL)
    if (is.null(line)) next
    if (!length(line)) break
    if (line == "?") {
      frame("ready")
      next
    }
    fields <- strsplit(line, " ", fixed = TRUE)[[1]]
    set(fields, "b")
    run(text(substring(fields[1], 2)))
    set(fields, "a")
    while (sink.number() > 0) sink()
    if (sink.number("message") != 2) sink(type = "message")
    frame("done", 0, stderr())
    frame("done", 0)
  }
})
