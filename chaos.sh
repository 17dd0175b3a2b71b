C=/work/main/bin/cove
for i in $(seq 1 12); do
  $C run -c 'import subprocess,time; subprocess.Popen(["sleep","1000"]); print("go",flush=True); time.sleep(1000)' >/dev/null 2>&1 &
  p=$!
  sleep 0.$((RANDOM%10))$((RANDOM%10)); [ $((i%3)) = 0 ] && sleep 1
  kill -9 $p; wait $p 2>/dev/null
done
sleep 1
echo "after kills: procs $(ps aux | grep -c '[r]unsc') dirs $(ls /root/.local/share/cove/run* 2>/dev/null| wc -l)"
$C run -c '1' ; sleep 0.5
ps aux | grep '[r]unsc' | head; find /sys/fs/cgroup -path '*cove*' -maxdepth 3 | head -3; mount | grep -c cove; find /root/.local/share/cove -maxdepth 3 -not -path '*pyenv*' -not -path '*tools*' | head
