"""Proves that a program in the sandbox cannot see or change anything of the machine but its work folder.

Each attack is really made, from inside, and the host is checked afterwards.
"""

import os
from pathlib import Path

import pytest

from tests.patience import until
from tests.security.sandbox_host import SECRET, SLEEP_S, Host

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).resolve().parents[2]
PTRACE_ATTACH = 16

# {env}: the host's .env · {outside}: a file beside the work folder · {pid}: a process of the host · {own}: the SOUL's
PRYING = {
    "the settings by their path": "cat {env}",
    "the settings by way of the work folder": "cat ../home/.env ../../home/.env",
    "the settings by a link": "ln -s {env} link && cat link",
    "the settings by the root of the first process": "cat /proc/1/root{env} /proc/1/cwd/../home/.env",
    "the environment of the SOUL": "cat /proc/{own}/environ",
    "the environment of every process": "cat /proc/*/environ /proc/*/task/*/environ; env",
    "the environment of a process of the host": "cat /proc/{pid}/environ",
    "what others are doing": "cat /proc/*/cmdline; ps -ef",
    "open files of others": "ls -l /proc/*/fd; timeout 1 cat /proc/1/fd/*",
    "the memory of the machine": "cat /dev/mem /dev/kmem /proc/kcore /dev/vda /dev/sda | head -c 1000",
}
OUTSIDE = {
    "the settings": "echo x > {env}",
    "a file beside the work folder": "echo x > {outside}; echo x > ../outside.txt; rm -f {outside}",
    "a file by a link": "ln -s {outside} link && echo x > link",
    "a new file beside the work folder": "mkdir -p {root}/new; touch {root}/new.txt ../new.txt",
    "programs": "touch /usr/bin/evil /bin/evil /usr/local/bin/evil /lib/evil",
    "the system's settings": "touch /etc/evil; echo x >> /etc/passwd; echo x > /etc/ld.so.preload",
    "the root and the devices": "touch /evil /dev/evil /var/evil /proc/evil",
    "the kernel's settings": "echo x > /proc/sys/kernel/core_pattern; echo x > /proc/sys/kernel/hostname;"
    " echo x > /proc/sys/kernel/modprobe; echo 1 > /proc/sys/vm/overcommit_memory; echo b > /proc/sysrq-trigger",
    "the host's name": "hostname evil",
}
BREAKING = {
    "mounting over the work folder": "mount -t tmpfs none /work",
    "making programs writable": "mount -o remount,rw /usr",
    "making the kernel's settings writable": "mount -o remount,rw /proc; mount -o remount,rw,bind /proc/sys",
    "mounting another /proc": "mkdir p; mount -t proc proc p",
    "taking a mount away": "umount /proc; umount /usr; umount /etc/passwd",
    "a user namespace": "unshare -U true",
    "a user namespace with root": "unshare -Ur true",
    "a mount namespace": "unshare -m true",
    "a network namespace": "unshare -n true",
    "the namespaces of the first process": "nsenter -t 1 -a true",
    "another root": "chroot / true",
    "another user": "setpriv --reuid 0 true; setpriv --reuid 65534 true",
    "a privileged program": "su -c true root </dev/null; mount; test -u su",
    "a privileged program of its own": "cp /bin/sh sh && chmod u+s sh && chown 0:0 sh",
    "a device": "mknod disk b 8 0",
    "a hard link to a file of the host": "ln /etc/passwd twin; ln /usr/bin/env twin; ln /proc/1/root{env} twin",
    "a module": "insmod x; modprobe tun",
    "the clock": "date -s 2000-01-01",
}


def told(host: Host, script: str) -> str:
    return script.format(
        env=host.env_file, outside=host.root / "outside.txt", root=host.root, pid=host.sleeper.pid, own=os.getpid()
    )


@pytest.mark.parametrize("what", PRYING)
async def test_secrets_cannot_be_read(host: Host, what: str) -> None:
    ran = await host.sh(told(host, PRYING[what]))
    assert SECRET not in ran.stdout + ran.stderr
    assert SLEEP_S not in ran.stdout


@pytest.mark.parametrize("what", OUTSIDE)
async def test_nothing_outside_the_work_folder_can_be_written(host: Host, what: str) -> None:
    ran = await host.sh(told(host, OUTSIDE[what]))
    assert ran.stderr, "it was refused, and said so"


@pytest.mark.parametrize("what", BREAKING)
async def test_nobody_breaks_out(host: Host, what: str) -> None:
    before = await host.sh("cat /proc/self/mountinfo | cut -d' ' -f3- | sort")
    script = "; ".join(
        f"({part.strip()}) && echo GOT:{number}" for number, part in enumerate(told(host, BREAKING[what]).split(";"))
    )
    ran = await host.sh(script)
    harmless = {"a privileged program": "GOT:1\n", "mounting another /proc": "GOT:0\n"}
    got = "".join(f"{line}\n" for line in ran.stdout.splitlines() if line.startswith("GOT"))
    assert got == harmless.get(what, ""), ran
    after = await host.sh("cat /proc/self/mountinfo | cut -d' ' -f3- | sort")
    assert before.stdout.count("\n") == after.stdout.count("\n")


async def test_a_process_of_the_host_cannot_be_hit(host: Host) -> None:
    ran = await host.python(
        f"""
import ctypes, os, signal
for pid in ({host.sleeper.pid}, {os.getpid()}, {os.getppid()}, -1, -{os.getpgid(host.sleeper.pid)}):
    for attempt in (lambda: os.kill(pid, signal.SIGKILL), lambda: os.pidfd_open(pid)):
        try: attempt(); print("hit", pid)
        except OSError: pass
print("attached", ctypes.CDLL(None).ptrace({PTRACE_ATTACH}, {host.sleeper.pid}, 0, 0))
print("seen", sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:1])
"""
    )
    assert ran.stdout.replace("hit -1\n", "") == "attached -1\nseen [1]\n"


async def test_no_network_is_there(host: Host) -> None:
    ran = await host.python(
        f"""
import socket
def attempt(name, act):
    try: act(); print("reached", name)
    except OSError as error: print("no", name)
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("8.8.8.8", 53))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {host.listener.port}), 2))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("\\0soul-trap-{host.listener.port}"))
attempt("udp", udp)
attempt("dns", lambda: socket.getaddrinfo("example.com", 80))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 2))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
"""
    )
    assert ran.stdout.split("\n")[:7] == ["no tcp", "no unix", "no udp", "no dns", "no raw", "no metadata", "no packet"]


async def test_the_network_is_there_when_asked_for(host: Host) -> None:
    ran = await host.python(
        f"import socket; socket.create_connection(('127.0.0.1', {host.listener.port}), 5)", network=True
    )
    assert ran.success, ran
    await until(lambda: host.listener.hits)  # a thread counts a connection a moment after it was accepted
    assert host.listener.hits == ["tcp"]
    host.listener.hits.clear()


async def test_there_is_no_terminal_to_type_into(host: Host) -> None:
    ran = await host.python(
        """
import fcntl, os, termios
for place in ("/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/console", "/dev/ptmx"):
    try:
        handle = os.open(place, os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(handle, termios.TIOCSTI, b"x")
        print("typed into", place)
    except OSError: pass
"""
    )
    assert ran.stdout == ""


async def test_the_user_inside_has_no_privileges_and_holds_no_files_of_ours(host: Host) -> None:
    ran = await host.sh("id -u; ls /proc/self/fd | wc -l; grep -E 'Cap|NoNewPrivs' /proc/self/status; ls -a /tmp /home")
    user, handles, *status = ran.stdout.split()
    assert (user, handles) == ("1000", "4"), "0, 1, 2 and the folder that ls reads"
    assert {value for value in status if set(value) <= {"0", "1"}} == {"0000000000000000", "1"}
    assert "cannot access '/home'" in ran.stderr
