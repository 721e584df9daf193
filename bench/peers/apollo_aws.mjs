// Apollo Server as documented, over the table, with a DataLoader per request.
import { ApolloServer } from '@apollo/server'
import { startStandaloneServer } from '@apollo/server/standalone'
import DataLoader from 'dataloader'
import { port, resolvers, typeDefs, usersOf } from './table.mjs'

const server = new ApolloServer({
  typeDefs,
  resolvers: {
    ...resolvers,
    Comment: { author: (comment, _, { users }) => users.load(comment.writtenBy) },
    Prediction: { user: (prediction, _, { users }) => users.load(prediction.madeBy) },
  },
})
const context = async () => ({ users: new DataLoader(usersOf) })
await startStandaloneServer(server, { listen: { port, host: '127.0.0.1' }, context })
