// A room in JavaScript, as other rooms behave towards their members: a relay with claims and replay, no more. A newcomer
// replaces who holds its name, whatever the id. Lines on stdin are said as the host.
import { createInterface } from 'node:readline';
import { Bonjour } from 'bonjour-service';
import { WebSocketServer } from 'ws';

const { port = 0, host, announce = '' } = JSON.parse(process.argv[2] ?? '{}');
const CHAT_GAP_MS = 3000;
const CLAIM_TTL_MS = 60000;
const HOST = { name: 'host', id: `host-${Date.now().toString(36)}` };

const members = new Map();
const claims = new Map();
const workspaces = new Map();
const log = [];
const now = () => new Date().toISOString();

function tell(kind, text) {
  process.stdout.write(`${kind} ${text}\n`);
}

function send(socket, message) {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}

function broadcast(message) {
  for (const socket of members.keys()) send(socket, message);
}

function keep(type, member, content) {
  log.push({ timestamp: now(), agentName: member.name, agentId: member.id, type, content });
}

function presence() {
  const agents = [...members.values()].map(({ lastChat, ...agent }) => agent);
  return { type: 'presence', agents };
}

function leave(socket) {
  const member = members.get(socket);
  if (!member) return;
  keep('leave', member, '');
  members.delete(socket);
  broadcast({ type: 'leave', name: member.name, id: member.id, timestamp: now() });
  for (const [key, claim] of claims) if (claim.name === member.name) claims.delete(key);
  broadcast(presence());
}

function join(socket, { name, id, version, capabilities }) {
  const known = Array.isArray(capabilities) ? { capabilities: capabilities.filter((c) => typeof c === 'string') } : {};
  for (const [other, member] of members) {
    if (member.name !== name) continue;
    leave(other);
    other.close(4002, 'Replaced by new connection');
  }
  const member = { name, id, version, joinedAt: now(), lastSeen: now(), ...known, lastChat: 0 };
  members.set(socket, member);
  keep('join', member, '');
  broadcast({ type: 'join', name, id, version, ...known });
  send(socket, presence());
  send(socket, { type: 'history_response', entries: log.slice(-200) });
  for (const state of workspaces.values()) send(socket, state);
  broadcast(presence());
}

const handlers = {
  chat(socket, member, { content, threadId }) {
    if (Date.now() - member.lastChat < CHAT_GAP_MS) {
      send(socket, { type: 'error', message: 'Rate limited: please wait before sending another message' });
      return;
    }
    member.lastChat = Date.now();
    const { name, id } = member;
    keep('chat', member, content);
    broadcast({ type: 'chat', name, id, content, timestamp: now(), ...(threadId ? { threadId } : {}) });
  },
  typing(socket, { name, id }) {
    broadcast({ type: 'typing', name, id, timestamp: now() });
  },
  identity(socket, member, { summary }) {
    member.identity = summary;
    keep('identity', member, JSON.stringify(summary));
    broadcast({ type: 'identity', name: member.name, id: member.id, summary, timestamp: now() });
    broadcast(presence());
  },
  claim(socket, member, { action, target }) {
    const key = `${action}:${target}`;
    const held = claims.get(key);
    if (held?.name === member.name) {
      held.at = Date.now();
      return;
    }
    if (held && Date.now() - held.at < CLAIM_TTL_MS) {
      const message = `Claim conflict: ${held.name} claimed ${target} before ${member.name}`;
      send(socket, { type: 'error', message });
      return;
    }
    claims.set(key, { name: member.name, at: Date.now() });
    keep('claim', member, key);
    broadcast({ type: 'claim', name: member.name, id: member.id, action, target, timestamp: now() });
  },
  state(socket, { name, id }, { state, detail }) {
    broadcast({ type: 'state', name, id, state, ...(detail ? { detail } : {}), timestamp: now() });
  },
  action_result(socket, member, { action, target, success, link, error }) {
    const { name, id } = member;
    claims.delete(`${action}:${target}`);
    keep('action_result', member, JSON.stringify({ action, target, success, link, error }));
    const more = { ...(link ? { link } : {}), ...(error ? { error } : {}) };
    broadcast({ type: 'action_result', name, id, action, target, success, ...more, timestamp: now() });
  },
  reflection(socket, member, { summary }) {
    keep('reflection', member, summary);
    broadcast({ type: 'reflection', name: member.name, id: member.id, summary, timestamp: now() });
  },
  workspace_state(socket, { name, id }, message) {
    const { workspace, planNumber = 0, totalTasks, completedTasks, blockedTasks = 0, inProgressTasks = 0 } = message;
    const counts = { planNumber, totalTasks, completedTasks, blockedTasks, inProgressTasks };
    const state = { type: 'workspace_state', name, id, workspace, ...counts, timestamp: now() };
    workspaces.set(workspace, state);
    broadcast(state);
  },
};

const server = new WebSocketServer({ port, host });
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    tell('got', data.toString());
    const message = JSON.parse(data.toString());
    if (message.type === 'join') join(socket, message);
    else if (members.has(socket)) handlers[message.type]?.(socket, members.get(socket), message);
  });
  socket.on('close', () => leave(socket));
});
server.on('listening', () => {
  tell('listening', server.address().port);
  if (announce) new Bonjour().publish({ name: announce, type: 'agent-space', port: server.address().port });
});

createInterface({ input: process.stdin }).on('line', (line) => {
  keep('chat', HOST, line);
  broadcast({ type: 'chat', ...HOST, content: line, timestamp: now() });
});
