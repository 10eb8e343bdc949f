// A member of an agent space in JavaScript, as other members are built: it joins, tells each frame that it gets on a
// line of its own, byte by byte, and sends each line that it is given.
import { createInterface } from 'node:readline';
import { Bonjour } from 'bonjour-service';
import WebSocket from 'ws';

const { name, id = `${name}-1`, version = '10.1.0', capabilities, url } = JSON.parse(process.argv[2]);

function found() {
  if (url) return Promise.resolve(url);
  return new Promise((resolve) => {
    const bonjour = new Bonjour();
    bonjour.findOne({ type: 'agent-space', protocol: 'tcp' }, 10000, (service) => {
      bonjour.destroy();
      resolve(service ? `ws://${service.host}:${service.port}` : 'ws://localhost:7777');
    });
  });
}

function tell(kind, text) {
  process.stdout.write(`${kind} ${text}\n`);
}

const room = await found();
tell('found', room);
const socket = new WebSocket(room);
const stamped = (message) =>
  JSON.stringify({ ...message, name, id, timestamp: new Date().toISOString() });

socket.on('open', () => {
  const join = { type: 'join', name, id, version };
  if (capabilities) join.capabilities = capabilities;
  socket.send(JSON.stringify(join));
});
socket.on('message', (data) => tell('frame', data.toString()));
socket.on('close', (code, reason) => {
  tell('close', `${code} ${reason}`);
  process.exit(0);
});
socket.on('error', (error) => tell('error', error.message));

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'leave') socket.close(1000, 'Client disconnecting');
  else socket.send(stamped(JSON.parse(line)));
});
