# shellcheck shell=bash
# Runs bash for a context: requests come as lines of two texts in base64, the code and what is behind it, and what is beside the output goes out in frames. See worker.go.
__cove_mark=$1
shift
exec 3<&0 </dev/null
trap : INT
while read -r __cove_code __cove_behind <&3; do
  if [ "$__cove_code" = '?' ]; then
    printf '\036%s ready\n' "$__cove_mark"
    continue
  fi
  eval "$(printf %s "$__cove_code" | base64 -d)"
  __cove_status=$?
  eval "$(printf %s "$__cove_behind" | base64 -d)"
  printf '\036%s done %s\n' "$__cove_mark" "$__cove_status" >&2
  printf '\036%s done %s\n' "$__cove_mark" "$__cove_status"
done
