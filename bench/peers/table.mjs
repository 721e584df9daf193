// The same pages from the same table, written as usual in Node: the AWS SDK's document client, which keeps connections
// open; one Query per partition; all queries of a step at once; authors in one batch read.
import { readFileSync } from 'node:fs'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { BatchGetCommand, DynamoDBDocumentClient, GetCommand, QueryCommand } from '@aws-sdk/lib-dynamodb'

const TableName = process.env.BENCH_TABLE
const documents = DynamoDBDocumentClient.from(
  new DynamoDBClient({
    endpoint: process.env.BENCH_ENGINE,
    region: 'us-east-1',
    credentials: { accessKeyId: 'bench', secretAccessKey: 'bench' },
  }),
)
let sent = 0
const send = (command) => {
  sent += 1
  return documents.send(command)
}

// Attributes that are part of the primary key are not stored separately.
const last = (key) => key.slice(key.lastIndexOf('#') + 1)
const id = (type, key) => Buffer.from(`${type}:${key}`).toString('base64url')
// Ringside's ids end with a checksum of three bytes.
const keyOf = (node) => Buffer.from(node, 'base64url').subarray(0, -3).toString().split(':')[1]

async function query(partition, { index = '', sort = '', values = {}, ...rest } = {}) {
  const found = await send(
    new QueryCommand({
      TableName,
      ...(index && { IndexName: index }),
      KeyConditionExpression: `${index}pk = :pk${sort && ` AND ${sort}`}`,
      ExpressionAttributeValues: { ':pk': partition, ...values },
      ...rest,
    }),
  )
  return found.Items
}

// Loads the members for a list of ids, each member once.
export async function usersOf(ids) {
  const distinct = [...new Set(ids)]
  const Keys = distinct.map((user) => ({ pk: `USER#${user}`, sk: 'PROFILE' }))
  const found = await send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }))
  const users = new Map(
    found.Responses[TableName].map((item) => [
      last(item.pk),
      { id: id('User', last(item.pk)), name: item.name, avatarUrl: item.avatar_url },
    ]),
  )
  return ids.map((user) => users.get(user))
}

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
function momentOf(ulid) {
  let milliseconds = 0
  for (const letter of ulid.slice(0, 10)) milliseconds = milliseconds * 32 + ALPHABET.indexOf(letter)
  return new Date(milliseconds).toISOString()
}

function partitionsOf(product, languages, ratings) {
  const own = `PRODUCT#${product}`
  if (languages && ratings) {
    return languages.flatMap((tag) => ratings.map((rating) => ['gsi3', `${own}#${tag}#${rating}`]))
  }
  if (languages) return languages.map((tag) => ['gsi1', `${own}#${tag}`])
  if (ratings) return ratings.map((rating) => ['gsi2', `${own}#~#${rating}`])
  return [['', own]]
}

async function commentsOf(index, partition, after, wanted) {
  const prefix = index ? '' : 'COMMENT#'
  const end = `${prefix}${after ? Buffer.from(after, 'base64url') : '~'}`
  const found = await query(partition, {
    index,
    sort: `${index}sk BETWEEN :first AND :last`,
    values: { ':first': prefix || '0', ':last': end },
    ScanIndexForward: false,
    Limit: wanted + (after ? 2 : 1), // includes the record at the cursor
  })
  return after ? found.filter((item) => item[`${index}sk`] !== end) : found
}

const allOf = (partition, kind) =>
  query(partition, { sort: 'begins_with(sk, :kind)', values: { ':kind': kind }, ConsistentRead: true })

async function totalOf(product, languages, ratings) {
  const shards = await allOf(`STATISTICS#${product}`, 'COUNTS#')
  let total = 0
  for (const shard of shards) {
    if (languages && !languages.includes(shard.sk.split('#')[1])) continue
    for (const rating of ratings ?? [1, 2, 3, 4, 5]) total += shard[`r${rating}`] ?? 0
  }
  return total
}

async function comments(_, { product, languages, ratings, first, after }) {
  const parts = await Promise.all(
    partitionsOf(product, languages, ratings).map(([index, partition]) => commentsOf(index, partition, after, first)),
  )
  const merged = parts.length === 1 ? parts[0] : parts.flat().sort((one, other) => (one.sk < other.sk ? 1 : -1))
  const edges = merged.slice(0, first).map((item) => ({
    cursor: Buffer.from(last(item.sk)).toString('base64url'),
    node: {
      id: id('Comment', `${product}#${last(item.sk)}`),
      language: item.language,
      rating: item.rating,
      title: item.title,
      body: item.body,
      createdAt: momentOf(last(item.sk)),
      editedAt: item.edited_at,
      writtenBy: item.author,
    },
  }))
  return {
    edges,
    pageInfo: { hasNextPage: merged.length > first, endCursor: edges.at(-1)?.cursor },
    asked: [product, languages, ratings],
  }
}

// Shared ranks from the top: 1, 1, 3.
function ranked(rows, scoreOf) {
  let rank = 0
  return rows.map((row, place) => {
    if (place === 0 || scoreOf(rows[place - 1]) !== scoreOf(row)) rank = place + 1
    return { rank, row }
  })
}

// A board's first 256 contenders are one partition, and their counts one item.
async function leaderboard(_, { board, first }) {
  const [contenders, found] = await Promise.all([
    allOf(`CONTENDERS#${board}#0`, 'CONTENDER#'),
    send(new GetCommand({ TableName, Key: { pk: `RESULTS#${board}`, sk: 'BLOCK#00' }, ConsistentRead: true })),
  ])
  const counts = JSON.parse(found.Item.numbers)
  const rows = contenders.filter((row) => !row.retired).map((row) => {
    const ordinal = Number(last(row.sk))
    const [wins = 0, losses = 0, ties = 0] = counts.slice(3 * ordinal, 3 * ordinal + 3)
    return { ordinal, name: row.name, retired: row.retired, wins, losses, ties }
  })
  rows.sort((a, b) => b.wins - b.losses - (a.wins - a.losses) || (a.name < b.name ? -1 : 1))
  const nodes = ranked(rows.slice(0, first), (row) => row.wins - row.losses).map(({ rank, row }) => ({
    rank,
    score: row.wins - row.losses,
    wins: row.wins,
    losses: row.losses,
    ties: row.ties,
    contender: { id: id('Contender', `${board}/${row.ordinal}`), name: row.name, retired: row.retired },
  }))
  return { nodes }
}

async function event(_, { id: node }) {
  const key = keyOf(node)
  const [found, matches] = await Promise.all([
    send(new GetCommand({ TableName, Key: { pk: `EVENT#${key}`, sk: 'STATE' }, ConsistentRead: true })),
    allOf(`EVENT#${key}`, 'MATCH#'),
  ])
  if (!found.Item) return null
  const { name, season, state, starts_at: startsAt, card, results, locked_at: locked } = found.Item
  const places = new Map(matches.map((item) => [last(item.sk), item]))
  let gates // the gates count picks; read once, when the counts are requested
  const gatesOf = () => (gates ??= allGates(key))
  return {
    key,
    id: node,
    name,
    season,
    state,
    startsAt,
    matches: card.map((place) => matchOf(key, place, places.get(place), results[place], locked && gatesOf)),
  }
}

async function allGates(event) {
  const numbers = [...Array(48).keys()].map((number) => String(number).padStart(2, '0'))
  const Keys = numbers.map((number) => ({ pk: `EVENT#${event}#GATE#${number}`, sk: 'GATE' }))
  const found = await send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }))
  return found.Responses[TableName]
}

const matchOf = (event, place, match, result, gatesOf) => ({
  number: match.number,
  gatesOf,
  result,
  id: id('Match', `${event}:${place}`),
  name: match.name,
  points: match.points,
  preshow: match.preshow,
  championships: match.championships,
  teams: match.teams,
})

async function pickCounts({ number, teams, gatesOf }) {
  if (!gatesOf) return null
  const gates = await gatesOf()
  return teams.map((_, team) => gates.reduce((sum, gate) => sum + (gate[`m${number}_${team}`] ?? 0), 0))
}

async function predictionsOf(key, first) {
  const lanes = await Promise.all(
    [0, 1, 2, 3].map((lane) => query(`EVENT#${key}#RANKED#${lane}`, { index: 'gsi2', Limit: first })),
  )
  const best = lanes.flat().sort((one, other) => (one.gsi2sk < other.gsi2sk ? -1 : 1)).slice(0, first)
  const nodes = ranked(best, (one) => one.share.points).map(({ rank, row }) => ({
    rank,
    points: row.share.points,
    correct: row.share.correct,
    madeBy: last(row.sk),
  }))
  return { nodes }
}

export const port = Number(process.argv[2])
export const typeDefs = readFileSync(new URL('whole.graphql', import.meta.url), 'utf8')
export const resolvers = {
  Query: { comments, leaderboard, event, calls: () => sent },
  CommentConnection: { totalCount: ({ asked }) => totalOf(...asked) },
  Event: { predictions: ({ key }, { first }) => predictionsOf(key, first) },
  Match: { pickCounts },
}
