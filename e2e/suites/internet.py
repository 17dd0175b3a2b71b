"""Stands in for the part of the internet that E2B's tests use, in a network namespace of its own.

internet.py DOMAIN PORT CERTIFICATE KEY

Names below DOMAIN lead to the server at 127.0.0.1:PORT, by TLS; three addresses and a name answer as the public ones do. Names are answered at 127.0.0.1:53.
"""

import asyncio
import ssl
import sys

DOMAIN, PORT, CERTIFICATE, KEY = sys.argv[1:]
PORTS = "9.9.9.9"  # where the names below DOMAIN lead
ANSWERS = {"1.1.1.1": "301 Moved Permanently", "8.8.8.8": "302 Found", "8.8.4.4": "204 No Content"}
NAMES = {"connectivitycheck.gstatic.com": "8.8.4.4"}


class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, sender):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, question = ".".join(labels).lower(), query[12 : at + 5]
        address = PORTS if name.endswith("." + DOMAIN) else NAMES.get(name)
        record = b""
        if address and question[-4:-2] == b"\0\1":
            record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + bytes(map(int, address.split(".")))
        head = query[:2] + (b"\x81\x80" if address else b"\x81\x83") + b"\0\1" + (b"\0\1" if record else b"\0\0") + b"\0\0\0\0"
        self.transport.sendto(head + question + record, sender)


def answering(status):
    async def answer(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(f"HTTP/1.1 {status}\r\nLocation: /\r\n{'' if status.startswith('204') else 'Content-Length: 0' + chr(13) + chr(10)}\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return answer


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def forward(reader, writer):
    there, back = await asyncio.open_connection("127.0.0.1", int(PORT))
    await asyncio.gather(copy(reader, back), copy(there, writer))


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    for address, status in ANSWERS.items():
        await asyncio.start_server(answering(status), address, 443, ssl=context)
    await asyncio.start_server(forward, PORTS, 443, ssl=context)
    await asyncio.get_running_loop().create_datagram_endpoint(Names, local_addr=("127.0.0.1", 53))
    await asyncio.Event().wait()


asyncio.run(main())
