// Brings up a Bluesky network (PLC, PDS, bsync, AppView) from the published @atproto/dev-env packages, on loopback
// and on fixed ports. Settings come from the environment (see start.sh). One JSON line on stdout, and in
// $RIG_READY_FILE, tells that it is ready.
import dns from 'node:dns'
import fs from 'node:fs'
import http from 'node:http'
import net from 'node:net'

// ---- Loopback only: every service listens without a host, that is, on all interfaces. Each listen() is rewritten
// before anything else is imported.
const HOST = '127.0.0.1'
dns.setDefaultResultOrder('ipv4first')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (...args) {
  const [a, b] = args
  if (a && typeof a === 'object' && a.port !== undefined && !a.path) {
    args[0] = { ...a, host: HOST }
  } else if (typeof a === 'number' || (typeof a === 'string' && /^\d+$/.test(a))) {
    if (typeof b === 'string') args[1] = HOST
    else args.splice(1, 0, HOST)
  } else if (a === undefined || typeof a === 'function') {
    args.unshift(0, HOST)
  }
  return listen.apply(this, args)
}

// ---- Settings
const env = process.env
const port = (name, otherwise) => parseInt(env[`RIG_${name}_PORT`] || String(otherwise), 10)
const ports = {
  control: port('CONTROL', 2580),
  plc: port('PLC', 2582),
  pds: port('PDS', 2583),
  appview: port('APPVIEW', 2584),
  bsync: port('BSYNC', 2586),
}
const rateLimits = env.RIG_RATE_LIMITS !== '0'
const bsyncApiKey = 'bsync-api-key'
const appviewKey = '3f916c70dc69e4c5e83877f013325b11ecac31742e6a42f5c4fb240d0703d9d5' // any fixed key will do
const localhost = (number) => `http://localhost:${number}`

const { TestPlc, TestPds, TestBsync, TestBsky, TestFeedGen, mockNetworkUtilities, JWT_SECRET, EXAMPLE_LABELER } =
  await import('@atproto/dev-env')

// ---- The network, wired as TestNetwork.create does it, less the moderation service
const plc = await TestPlc.create({ port: ports.plc })
const bsync = await TestBsync.create({
  port: ports.bsync,
  apiKeys: [bsyncApiKey],
  dbUrl: env.DB_POSTGRES_URL,
  dbSchema: 'bsync',
})
const bsky = await TestBsky.create({
  port: ports.appview,
  publicUrl: localhost(ports.appview), // pictures: <publicUrl>/img/...
  plcUrl: plc.url,
  pdsPort: ports.pds,
  bsyncApiKey,
  bsyncUrl: bsync.url,
  repoProvider: `ws://localhost:${ports.pds}`,
  dbPostgresUrl: env.DB_POSTGRES_URL,
  dbPostgresSchema: 'bsky',
  redisHost: 'unused', // only asserted to be set; nothing connects
  labelsFromIssuerDids: [EXAMPLE_LABELER],
  privateKey: appviewKey,
})
bsync.ctx.dataplaneClients = [bsky.ctx.dataplane]
const pds = await TestPds.create({
  port: ports.pds,
  hostname: 'localhost', // any other name would be https in the DID documents
  didPlcUrl: plc.url,
  enableDidDocWithSession: true, // as bsky.social does; clients then talk to the address in the document
  bskyAppViewUrl: bsky.url,
  bskyAppViewDid: bsky.ctx.cfg.serverDid,
  bskyAppViewCdnUrlPattern: `${localhost(ports.appview)}/img/%s/plain/%s/%s`,
  modServiceUrl: undefined, // none, rather than an invalid host that is looked up at each call
  modServiceDid: undefined,
  ...(rateLimits ? { rateLimitsEnabled: true, rateLimitBypassKey: 'rig-bypass-key' } : {}),
})
mockNetworkUtilities(pds, bsky)

// ---- Returns when the AppView has indexed everything written so far
async function settle(timeout = 10_000) {
  await pds.processAll()
  await bsky.bsyncSub.processAll(await bsync.getStreamHeads(), timeout)
  const end = Date.now() + timeout
  const last = await pds.ctx.sequencer.curr()
  while (last) {
    await bsky.sub.processAll()
    const current = await bsky.sub.getCursor()
    if (current && current >= last) return
    if (Date.now() > end) throw new Error(`not indexed in ${timeout} ms`)
    await new Promise((done) => setTimeout(done, 5))
  }
}

// ---- Feeds: one that is announced shows the posts with its name as a tag
const feeds = {}
const feedGenerator = await TestFeedGen.create(plc.url, feeds)
function announce(feed) {
  const tag = encodeURIComponent(`#${feed.split('/').pop()}`)
  feeds[feed] = async ({ params }) => {
    const search = `${bsky.url}/xrpc/app.bsky.feed.searchPosts?q=${tag}&limit=${params.limit}`
    const { posts } = await (await fetch(search)).json()
    return { encoding: 'application/json', body: { feed: posts.map((post) => ({ post: post.uri })) } }
  }
}

// ---- The control server: GET / tells the addresses, POST /settle waits for the AppView, POST /feed/ADDRESS announces
const info = {
  pid: process.pid,
  pds: localhost(ports.pds),
  appview: localhost(ports.appview),
  control: localhost(ports.control),
  jwt_secret: JWT_SECRET,
  feeds_did: feedGenerator.did,
  rate_limits: rateLimits,
}
const control = http.createServer(async (request, response) => {
  const send = (code, body) => {
    response.writeHead(code, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  try {
    if (request.method === 'GET' && request.url === '/') return send(200, info)
    if (request.method === 'POST' && request.url === '/settle') {
      const start = performance.now()
      await settle()
      return send(200, { ms: Math.round(performance.now() - start) })
    }
    if (request.method === 'POST' && request.url.startsWith('/feed/')) {
      announce(decodeURIComponent(request.url.slice('/feed/'.length)))
      return send(200, {})
    }
    send(404, { error: 'NotFound' })
  } catch (error) {
    send(500, { error: String(error) })
  }
})
await new Promise((done) => control.listen(ports.control, done))

let stopping = false
async function shutdown(why) {
  if (stopping) return
  stopping = true
  console.error(`stopping (${why})`)
  setTimeout(() => process.exit(3), 8000).unref()
  control.closeAllConnections()
  control.close()
  await Promise.allSettled([feedGenerator.close(), bsky.close(), bsync.close(), pds.close(), plc.close()])
  process.exit(0)
}
process.on('SIGTERM', () => shutdown('SIGTERM'))
process.on('SIGINT', () => shutdown('SIGINT'))
process.on('unhandledRejection', (error) => console.error('unhandledRejection', error))

const line = JSON.stringify(info)
if (env.RIG_READY_FILE) {
  fs.writeFileSync(`${env.RIG_READY_FILE}.tmp`, `${line}\n`)
  fs.renameSync(`${env.RIG_READY_FILE}.tmp`, env.RIG_READY_FILE)
}
process.stdout.write(`${line}\n`)
