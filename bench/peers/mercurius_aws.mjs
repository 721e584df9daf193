// Mercurius with its own batching loaders over the table; the second argument `jit` compiles operations.
import Fastify from 'fastify'
import mercurius from 'mercurius'
import { port, resolvers, typeDefs, usersOf } from './table.mjs'

const opts = { cache: false }
const app = Fastify()
app.register(mercurius, {
  schema: typeDefs,
  resolvers,
  loaders: {
    Comment: { author: { loader: (asked) => usersOf(asked.map(({ obj }) => obj.writtenBy)), opts } },
    Prediction: { user: { loader: (asked) => usersOf(asked.map(({ obj }) => obj.madeBy)), opts } },
  },
  jit: process.argv[3] === 'jit' ? 1 : 0,
})
await app.listen({ port, host: '127.0.0.1' })
