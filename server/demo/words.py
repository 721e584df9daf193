"""The words of the demo's three lists: simplified | traditional, where it differs | pinyin | meaning."""

FIRST_WORDS = """
你好||nǐ hǎo|hello
谢谢|謝謝|xièxie|thank you
再见|再見|zàijiàn|goodbye
请|請|qǐng|please
对不起|對不起|duìbuqǐ|sorry
没关系|沒關係|méi guānxi|never mind
是||shì|to be; yes
不||bù|not; no
我||wǒ|I; me
你||nǐ|you
他||tā|he; him
她||tā|she; her
我们|我們|wǒmen|we; us
你们|你們|nǐmen|you, several of you
他们|他們|tāmen|they; them
谁|誰|shéi|who
什么|什麼|shénme|what
哪里|哪裡|nǎlǐ|where
怎么|怎麼|zěnme|how
为什么|為什麼|wèishénme|why
什么时候|什麼時候|shénme shíhou|when
多少||duōshao|how much; how many
这|這|zhè|this
那||nà|that
人||rén|person
朋友||péngyou|friend
老师|老師|lǎoshī|teacher
学生|學生|xuésheng|student
爸爸||bàba|father
妈妈|媽媽|māma|mother
哥哥||gēge|elder brother
姐姐||jiějie|elder sister
弟弟||dìdi|younger brother
妹妹||mèimei|younger sister
孩子||háizi|child
家||jiā|home; family
名字||míngzi|name
今天||jīntiān|today
明天||míngtiān|tomorrow
昨天||zuótiān|yesterday
现在|現在|xiànzài|now
早上||zǎoshang|morning
中午||zhōngwǔ|noon
晚上||wǎnshang|evening
年||nián|year
月||yuè|month; moon
星期||xīngqī|week
天||tiān|day; sky
小时|小時|xiǎoshí|hour
分钟|分鐘|fēnzhōng|minute
一||yī|one
二||èr|two
三||sān|three
四||sì|four
五||wǔ|five
六||liù|six
七||qī|seven
八||bā|eight
九||jiǔ|nine
十||shí|ten
百||bǎi|hundred
大||dà|big
小||xiǎo|small
多||duō|many; much
少||shǎo|few; little
好||hǎo|good
坏|壞|huài|bad; broken
新||xīn|new
旧|舊|jiù|old, of things
高||gāo|tall; high
快||kuài|fast
慢||màn|slow
热|熱|rè|hot
冷||lěng|cold
来|來|lái|to come
去||qù|to go
看||kàn|to look; to read
听|聽|tīng|to listen
说|說|shuō|to speak
读|讀|dú|to read aloud
写|寫|xiě|to write
学习|學習|xuéxí|to learn
工作||gōngzuò|to work; job
休息||xiūxi|to rest
喜欢|喜歡|xǐhuan|to like
爱|愛|ài|to love
想||xiǎng|to think; to want to
知道||zhīdào|to know
有||yǒu|to have; there is
在||zài|to be at
可以||kěyǐ|may; can
水||shuǐ|water
火||huǒ|fire
山||shān|mountain
树|樹|shù|tree
花||huā|flower
狗||gǒu|dog
猫|貓|māo|cat
鸟|鳥|niǎo|bird
书|書|shū|book
"""

AT_THE_TABLE = """
吃||chī|to eat
喝||hē|to drink
饿|餓|è|hungry
渴||kě|thirsty
饱|飽|bǎo|full, having eaten enough
早饭|早飯|zǎofàn|breakfast
午饭|午飯|wǔfàn|lunch
晚饭|晚飯|wǎnfàn|dinner
米饭|米飯|mǐfàn|cooked rice
面条|麵條|miàntiáo|noodles
饺子|餃子|jiǎozi|dumplings
包子||bāozi|filled steamed bun
馒头|饅頭|mántou|plain steamed bun
面包|麵包|miànbāo|bread
汤|湯|tāng|soup
粥||zhōu|rice porridge
菜||cài|dish; vegetable
蔬菜||shūcài|vegetables
白菜||báicài|Chinese cabbage
土豆||tǔdòu|potato
西红柿|西紅柿|xīhóngshì|tomato
黄瓜|黃瓜|huángguā|cucumber
胡萝卜|胡蘿蔔|húluóbo|carrot
蘑菇||mógu|mushroom
豆腐||dòufu|tofu
鸡蛋|雞蛋|jīdàn|egg
肉||ròu|meat
牛肉||niúròu|beef
猪肉|豬肉|zhūròu|pork
鸡肉|雞肉|jīròu|chicken
羊肉||yángròu|lamb; mutton
鱼|魚|yú|fish
虾|蝦|xiā|shrimp
水果||shuǐguǒ|fruit
苹果|蘋果|píngguǒ|apple
香蕉||xiāngjiāo|banana
葡萄||pútao|grape
西瓜||xīguā|watermelon
橙子||chéngzi|orange
梨||lí|pear
桃子||táozi|peach
草莓||cǎoméi|strawberry
茶||chá|tea
咖啡||kāfēi|coffee
牛奶||niúnǎi|milk
果汁||guǒzhī|juice
啤酒||píjiǔ|beer
糖||táng|sugar; sweets
盐|鹽|yán|salt
醋||cù|vinegar
酱油|醬油|jiàngyóu|soy sauce
油||yóu|oil
辣椒||làjiāo|chilli
姜|薑|jiāng|ginger
蒜||suàn|garlic
葱|蔥|cōng|spring onion
甜||tián|sweet
咸|鹹|xián|salty
酸||suān|sour
苦||kǔ|bitter
辣||là|spicy
好吃||hǎochī|tasty
筷子||kuàizi|chopsticks
勺子||sháozi|spoon
叉子||chāzi|fork
刀||dāo|knife
碗||wǎn|bowl
盘子|盤子|pánzi|plate
杯子||bēizi|cup; glass
锅|鍋|guō|pot; wok
厨房|廚房|chúfáng|kitchen
饭馆|飯館|fànguǎn|restaurant
菜单|菜單|càidān|menu
服务员|服務員|fúwùyuán|waiter
客人||kèrén|guest
点菜|點菜|diǎn cài|to order dishes
买单|買單|mǎidān|to pay the bill
做饭|做飯|zuò fàn|to cook
炒||chǎo|to stir-fry
煮||zhǔ|to boil
蒸||zhēng|to steam
烤||kǎo|to roast; to bake
切||qiē|to cut
洗||xǐ|to wash
尝|嚐|cháng|to taste
干杯|乾杯|gānbēi|cheers
新鲜|新鮮|xīnxiān|fresh
冰箱||bīngxiāng|refrigerator
超市||chāoshì|supermarket
市场|市場|shìchǎng|market
"""

AT_THE_MATCH = """
比赛|比賽|bǐsài|match; contest
运动|運動|yùndòng|sport; exercise
运动员|運動員|yùndòngyuán|athlete
队|隊|duì|team
队员|隊員|duìyuán|team member
队长|隊長|duìzhǎng|captain
教练|教練|jiàoliàn|coach
裁判||cáipàn|referee
观众|觀眾|guānzhòng|audience
球迷||qiúmí|fan
冠军|冠軍|guànjūn|champion
亚军|亞軍|yàjūn|runner-up
奖牌|獎牌|jiǎngpái|medal
奖杯|獎盃|jiǎngbēi|trophy
腰带|腰帶|yāodài|belt
赢|贏|yíng|to win
输|輸|shū|to lose
平局||píngjú|draw
得分||défēn|to score; points
比分||bǐfēn|score
开始|開始|kāishǐ|to begin
结束|結束|jiéshù|to end
休息时间|休息時間|xiūxi shíjiān|break
决赛|決賽|juésài|final
半决赛|半決賽|bànjuésài|semi-final
对手|對手|duìshǒu|opponent
训练|訓練|xùnliàn|to train
锻炼|鍛鍊|duànliàn|to work out
跑||pǎo|to run
跳||tiào|to jump
踢||tī|to kick
打||dǎ|to hit; to play
投||tóu|to throw
接||jiē|to catch
传球|傳球|chuán qiú|to pass the ball
射门|射門|shèmén|to shoot at goal
摔跤||shuāijiāo|wrestling
拳击|拳擊|quánjī|boxing
足球||zúqiú|football
篮球|籃球|lánqiú|basketball
排球||páiqiú|volleyball
网球|網球|wǎngqiú|tennis
乒乓球||pīngpāngqiú|table tennis
羽毛球||yǔmáoqiú|badminton
棒球||bàngqiú|baseball
游泳||yóuyǒng|to swim
滑雪||huáxuě|to ski
滑冰||huábīng|to skate
骑车|騎車|qí chē|to ride a bicycle
爬山||páshān|to climb a mountain
体育馆|體育館|tǐyùguǎn|gymnasium
操场|操場|cāochǎng|sports ground
擂台|擂臺|lèitái|ring for contests
更衣室||gēngyīshì|changing room
票||piào|ticket; vote
座位||zuòwèi|seat
门口|門口|ménkǒu|entrance
加油||jiāyóu|come on
鼓掌||gǔzhǎng|to applaud
欢呼|歡呼|huānhū|to cheer
唱歌||chànggē|to sing
旗子||qízi|flag
口号|口號|kǒuhào|slogan
支持||zhīchí|to support
投票||tóupiào|to vote
预测|預測|yùcè|to predict
排名||páimíng|ranking
评论|評論|pínglùn|comment
规则|規則|guīzé|rule
犯规|犯規|fànguī|foul
红牌|紅牌|hóngpái|red card
黄牌|黃牌|huángpái|yellow card
受伤|受傷|shòushāng|to be injured
医生|醫生|yīshēng|doctor
累||lèi|tired
紧张|緊張|jǐnzhāng|nervous; tense
激动|激動|jīdòng|excited
高兴|高興|gāoxìng|glad
难过|難過|nánguò|sad
骄傲|驕傲|jiāo'ào|proud
勇敢||yǒnggǎn|brave
强|強|qiáng|strong
弱||ruò|weak
公平||gōngpíng|fair
精彩||jīngcǎi|brilliant
厉害|厲害|lìhai|impressive
著名||zhùmíng|famous
秘密||mìmì|secret
直播||zhíbō|live broadcast
电视|電視|diànshì|television
记者|記者|jìzhě|reporter
新闻|新聞|xīnwén|news
"""
