# shellcheck shell=bash
# Runs the commands of a session: requests come as lines, the mark, an id and the command in base64; what else comes as input is the command's that runs.
# What is beside the output goes out in frames, at the beginning and the end of each command, in both streams. See shells.go.
__cove_mark=$1
shift
exec 8>&1 9>&2
__cove_frame() {
  printf '\036%s %s\n' "$__cove_mark" "$1" >&9
  printf '\036%s %s\n' "$__cove_mark" "$1" >&8
}
while IFS= read -r __cove_line; do
  case $__cove_line in "$__cove_mark "*) ;; *) continue ;; esac
  __cove_line=${__cove_line#* }
  if [ "$__cove_line" = '?' ]; then
    __cove_frame "ready ? 0"
    continue
  fi
  __cove_id=${__cove_line%% *}
  __cove_frame "begin $__cove_id ${__cove_line:${#__cove_id}+1:8192}"
  eval "$(printf %s "${__cove_line#* }" | base64 -d)"
  __cove_frame "done $__cove_id $?"
done
